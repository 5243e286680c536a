#include "tests/emulator/ptx/decode.h"

// Branches, ends, and barriers of blocks and clusters.
namespace lrnn::emulator {
namespace {

void branch(Warp& w, const Instruction& i) {
  const auto target = uint32_t(i.number);
  if (w.exec == w.active) {
    w.pc = target;
    if (w.others != kNone) w.regroup = true;
    return;
  }
  for (uint32_t rest = w.exec; rest; rest &= rest - 1) w.pcs[std::countr_zero(rest)] = target;
  for (uint32_t rest = w.active & ~w.exec; rest; rest &= rest - 1)
    w.pcs[std::countr_zero(rest)] = w.pc;
  w.active = 0, w.regroup = true;
}

void end(Warp& w, const Instruction&) {
  for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    w.sends[l].make(kNone);
  }
  w.alive &= ~w.exec, w.active &= ~w.exec;
  w.regroup = true;
  ++w.block->events;
  w.block->check_barriers();
  w.block->cluster->check_barrier();
}

void trap(Warp& w, const Instruction&) { w.stop("a trap"); }
void nothing(Warp&, const Instruction&) {}
void wait_for_launches(Warp& w, const Instruction&) {
  if (w.races()) w.races()->wait_for_launches(w);
}
void fence_proxy(Warp& w, const Instruction&) {
  if (w.races()) w.races()->fence(w);
}

template <bool kWaits> void barrier(Warp& w, const Instruction& i) {
  const auto first = std::countr_zero(w.exec);
  const uint32_t id = w.at(i.a)[first], threads = i.count ? w.at(i.b)[first] : 0;
  if (id >= 16) w.stop("a barrier of number " + std::to_string(id));
  w.block->arrive(w, int(id), int(threads), kWaits);
}

void arrive_in_cluster(Warp& w, const Instruction&) {
  Cluster& all = *w.block->cluster;
  each(w.exec, [&](int l) { w.cluster_phase[l] = all.phase; });
  w.in_cluster |= w.exec;
  if (w.races()) w.races()->release(w, w.races()->cluster());
  ++w.block->events;
  all.check_barrier();
}
void wait_for_cluster(Warp& w, const Instruction&) {
  uint32_t wait = 0;
  for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
    const int l = std::countr_zero(rest);
    if (w.cluster_phase[l] == w.block->cluster->phase) wait |= 1u << l;
  }
  if (!wait) {
    if (w.races()) w.races()->acquire(w, w.races()->cluster());
    return;
  }
  if (w.exec != w.active) w.stop("lanes wait for their cluster apart from each other");
  --w.pc;
  w.wait_and_retry();
}

}  // namespace

void Cluster::check_barrier() {
  bool anybody = false;
  for (const Block& block : blocks)
    for (const Warp& w : block.warps) {
      if (w.alive & ~w.in_cluster) return;
      anybody = anybody || w.in_cluster;
    }
  if (!anybody) return;
  ++phase;
  for (Block& block : blocks) {
    ++block.events;
    for (Warp& w : block.warps) w.in_cluster = 0;
  }
}

bool decode_control(Decoding& d, Instruction& i) {
  if (d.is("bra")) {
    i.run = branch;
    const auto found = d.text.labels.find(d.operand(0).name);
    if (found == d.text.labels.end()) d.stop("the label is not known");
    i.number = found->second;
    return true;
  }
  if (d.is("ret") || d.is("exit")) return i.run = end, true;
  if (d.is("trap")) return i.run = trap, true;
  if (d.is("barrier") && d.has("cluster")) {
    i.run = d.has("arrive") ? arrive_in_cluster : wait_for_cluster;
    return true;
  }
  if (d.is("bar") || d.is("barrier")) {
    if (!d.has("sync") && !d.has("arrive")) return false;
    i.run = d.has("sync") ? barrier<true> : barrier<false>;
    i.a = d.place(0, 32);
    if (d.size() > 1) i.b = d.place(1, 32), i.count = 1;
    return true;
  }
  // Order between threads needs nothing where warps take turns; registers are as many as are named;
  // a kernel begins when those before it have ended.
  if (d.is("fence") && d.has("proxy")) return i.run = fence_proxy, true;
  if (d.is("griddepcontrol") && d.has("wait")) return i.run = wait_for_launches, true;
  if (d.is("membar") || d.is("fence") || d.is("setmaxnreg") || d.is("prefetch") ||
      d.is("griddepcontrol"))
    return i.run = nothing, true;
  return false;
}

}  // namespace lrnn::emulator
