#include "training/adamw.h"

#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "kernels/row_kernels.h"

namespace lrnn::training {
namespace {

using torch::Tensor;

constexpr int64_t kAlign = 16;  // floats in a cache line: every parameter starts on one

// The memory of x is about to be given back. On a GPU this stream may still have to read it, and if
// x was made on another one, nobody there would know.
void keep_until_read(const Tensor& x) {
  if (x.is_cuda())
    x.record_stream(c10::impl::VirtualGuardImpl(x.device().type()).getStream(x.device()));
}

}  // namespace

AdamW::AdamW(torch::nn::Module& module, const TrainConfig& train, const Decays& decays,
             const Ranks& ranks)
    : beta1_(train.betas.at(0)),
      beta2_(train.betas.at(1)),
      eps_(train.eps),
      decay_(train.weight_decay),
      tap_decay_(train.tap_decay),
      ranks_(ranks) {
  seat(module, train.accumulate > 1 || ranks.count() > 1);
  average_.emplace(values_, train.ema);
  find_readers(module);
  cut(decays);
}

void AdamW::seat(torch::nn::Module& module, bool parts) {
  std::set<const void*> seen;  // tied parameters appear under each of their names
  int64_t total = 0;
  torch::Device device = torch::kCPU;
  for (const auto& item : module.named_parameters()) {
    const Tensor& p = item.value();
    if (!p.requires_grad() || !seen.insert(p.unsafeGetTensorImpl()).second) continue;
    check(p.scalar_type() == torch::kFloat32 && (slots_.empty() || p.device() == device),
          "[adamw] parameter ", item.key(), " must be float32 on the device of the others, got ",
          p.scalar_type(), " on ", p.device());
    device = p.device();
    slots_.push_back({.name = item.key(),
                      .parameter = p,
                      .grad = {},
                      .copy = {},
                      .begin = total,
                      .size = p.numel()});
    total += (p.numel() + kAlign - 1) / kAlign * kAlign;
  }
  size_ = total;
  own_ = {0, total};
  if (ranks_.count() > 1) {  // whole pieces: the norm then adds up the same numbers as one process
    const int64_t most = ranks_.count() * kPiece, slice = (total + most - 1) / most * kPiece;
    total = slice * ranks_.count();
    own_ = {ranks_.rank() * slice, (ranks_.rank() + 1) * slice};
  }
  values_ = torch::zeros({total}, device);
  if (parts || device.is_cpu()) grads_ = torch::zeros({total}, device);
  for (auto* buffer : {&m_, &v_}) *buffer = torch::zeros({own_.size()}, device);
  torch::NoGradGuard no_grad;
  for (auto& slot : slots_) {
    const auto view = [&](const Tensor& flat) {
      return flat.narrow(0, slot.begin, slot.size).view(slot.parameter.sizes());
    };
    view(values_).copy_(slot.parameter);
    keep_until_read(slot.parameter);
    slot.parameter.set_data(view(values_));
    if (grads_.defined()) slot.grad = view(grads_);
    if (const auto& p = slot.parameter; p.dim() == 3 && p.size(1) == 1 && p.size(2) > 1)
      taps_.push_back(view(values_).narrow(2, 0, p.size(2) - 1));
    slot.parameter.mutable_grad() = slot.grad;
  }
}

Tensor AdamW::part(const Tensor& flat, int64_t begin, const std::vector<int64_t>& shape) {
  return flat.narrow(0, begin, c10::multiply_integers(shape)).view(shape);
}

void AdamW::find_readers(torch::nn::Module& module) {
  std::map<const void*, size_t> slot_of;
  for (size_t i = 0; i < slots_.size(); ++i) slot_of[slots_[i].parameter.unsafeGetTensorImpl()] = i;
  for (const auto& one : module.modules(/*include_self=*/false)) {
    if (auto* layer = dynamic_cast<mixers::Weighted*>(one.get()))
      if (const auto found = slot_of.find(layer->weight.unsafeGetTensorImpl());
          found != slot_of.end())
        readers_.push_back({one, layer, found->second});
    if (auto* has = dynamic_cast<mixers::HasPacks*>(one.get()))
      for (auto* pack : has->packs()) seat(one, *pack, slot_of);
  }
}

// Whoever reads several weights as one is told where they are, if they lie end to end.
void AdamW::seat(const std::shared_ptr<torch::nn::Module>& module, mixers::Pack& pack,
                 const std::map<const void*, size_t>& slot_of) {
  if (pack.members().empty()) return;
  int64_t end = -1;
  Seated seated{module, &pack, 0, pack.members()[0]->weight.sizes().vec()};
  seated.shape[0] = 0;
  for (const auto& member : pack.members()) {
    const auto found = slot_of.find(member->weight.unsafeGetTensorImpl());
    if (found == slot_of.end()) return;
    const Slot& slot = slots_[found->second];
    if (end < 0) seated.begin = end = slot.begin;
    if (slot.begin != end) return;
    end += slot.size, seated.shape[0] += member->weight.size(0);
  }
  pack.seat(part(values_, seated.begin, seated.shape));
  packs_.push_back(std::move(seated));
}

void AdamW::cut(const Decays& decays) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    const bool decays_here = slots_[i].decays = decays(slots_[i].name);
    const int64_t end = i + 1 < slots_.size() ? slots_[i + 1].begin : values_.numel();
    for (int64_t begin = slots_[i].begin; begin < end;) {
      if (pieces_.empty() || pieces_.back().decays != decays_here ||
          pieces_.back().end - pieces_.back().begin >= kPiece)
        pieces_.push_back({begin, begin, decays_here});
      Piece& piece = pieces_.back();
      begin = piece.end = std::min(end, piece.begin + kPiece);
    }
  }
}

// Autograd adds to a gradient it finds, but a caller may have taken it away or replaced it.
void AdamW::gather() const {
  for (const auto& slot : slots_) {
    const Tensor& grad = slot.parameter.grad();
    if (grad.defined() && grad.is_same(slot.grad)) continue;
    torch::NoGradGuard no_grad;
    grad.defined() ? slot.grad.copy_(grad) : slot.grad.zero_();
    slot.parameter.mutable_grad() = slot.grad;
  }
}

void AdamW::zero_grad() {
  for (const auto& slot : slots_)
    if (!slot.parameter.grad().is_same(slot.grad)) slot.parameter.mutable_grad() = slot.grad;
  grads_.zero_();
}

void AdamW::exchange() {
  if (ranks_.count() == 1) return;
  gather();
  ranks_.sum_own_slice(grads_);
}

double AdamW::grad_norm() const {
  gather();
  const float* g = grads_.const_data_ptr<float>() + own_.begin;
  const int64_t n = own_.size(), pieces = (n + kPiece - 1) / kPiece;
  std::vector<double> squares(static_cast<size_t>(pieces));
  at::parallel_for(0, pieces, 4, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i)
      squares[size_t(i)] = kernels::rows::flat_table().sum_of_squares(
          g + i * kPiece, std::min(kPiece, n - i * kPiece));
  });
  double total = 0;
  for (const auto& of_rank : ranks_.numbers(squares))
    for (const double s : of_rank) total += s;
  return std::sqrt(total);
}

std::string AdamW::first_nonfinite() const {
  gather();
  for (const auto& slot : slots_)
    if (!slot.grad.isfinite().all().item<bool>()) return slot.name;
  return "";
}

double AdamW::clip(double norm, double limit) {
  return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1;
}

void AdamW::step(double lr, double scale) {
  gather();
  ++t_;
  kernels::rows::AdamwStep a{};
  a.beta1 = float(beta1_), a.beta2 = float(beta2_), a.eps = float(eps_), a.scale = float(scale);
  a.rest1 = float(1 - beta1_), a.rest2 = float(1 - beta2_);
  a.rate = float(lr / (1 - std::pow(beta1_, double(t_))));
  a.root = float(std::sqrt(1 - std::pow(beta2_, double(t_))));
  float *p = values_.mutable_data_ptr<float>(), *m = m_.mutable_data_ptr<float>(),
        *v = v_.mutable_data_ptr<float>();
  const float* g = grads_.const_data_ptr<float>();
  at::parallel_for(0, int64_t(pieces_.size()), 2, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const auto& piece = pieces_[size_t(i)];
      const int64_t begin = std::max(piece.begin, own_.begin), end = std::min(piece.end, own_.end);
      if (begin >= end) continue;
      auto own = a;
      own.keep = piece.decays ? float(1 - lr * decay_) : 1;
      kernels::rows::flat_table().adamw(own, end - begin, p + begin, g + begin,
                                        m + begin - own_.begin, v + begin - own_.begin);
    }
  });
  share();
  if (tap_decay_ > 0) shrink_taps(torch::tensor(double(a.rate), torch::kFloat64));
  average_->follow(t_);
  // Views saved by a graph must know that their values changed.
  for (const auto& slot : slots_) slot.parameter.unsafeGetTensorImpl()->bump_version();
}

// A proximal step of the sum of absolute values: what is smaller than the step becomes 0. Where
// every rank has all values, each does the same.
void AdamW::shrink_taps(const Tensor& rate) const {
  if (tap_decay_ == 0 || taps_.empty()) return;
  const torch::NoGradGuard no_grad;
  const Tensor by = (rate * tap_decay_).to(torch::kFloat32);
  for (const Tensor& taps : taps_) taps.copy_(taps.sign() * (taps.abs() - by).clamp_min(0));
}

void AdamW::drop_grads() {
  for (auto& slot : slots_) {
    slot.parameter.mutable_grad().reset();
    if (slot.copy.defined()) slot.copy.mutable_grad().reset();
  }
}

std::vector<ops::GpuGradient> AdamW::fetch_grads() {
  std::vector<ops::GpuGradient> out;
  for (auto& slot : slots_) {
    ops::GpuGradient g{.wide = slot.parameter.grad(),
                       .narrow = slot.copy.defined() ? slot.copy.grad() : Tensor(),
                       .begin = slot.begin,
                       .size = slot.size,
                       .decays = slot.decays};
    if (g.wide.defined() && g.narrow.defined()) g.wide.add_(std::exchange(g.narrow, {}));
    out.push_back(std::move(g));
  }
  drop_grads();
  return out;
}

void AdamW::show_grads(const std::vector<ops::GpuGradient>& gradients) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Tensor& g = gradients[i].wide.defined() ? gradients[i].wide : gradients[i].narrow;
    slots_[i].parameter.mutable_grad() = g;
  }
}

void AdamW::add_to_sums(const std::vector<ops::GpuGradient>& gradients) {
  for (const auto& g : gradients) {
    Tensor sum = grads_.narrow(0, g.begin, g.size);
    if (g.wide.defined()) sum.add_(g.wide.reshape(-1));
    if (g.narrow.defined()) sum.add_(g.narrow.reshape(-1));
  }
}

void AdamW::show_sums() {
  for (auto& slot : slots_) slot.parameter.mutable_grad() = slot.grad;
}

std::vector<ops::GpuGradient> AdamW::sums() const {
  std::vector<ops::GpuGradient> out;
  const auto add = [&](int64_t begin, int64_t end, bool decays) {
    begin = std::max(begin, own_.begin), end = std::min(end, own_.end);
    if (begin < end)
      out.push_back({.wide = grads_.narrow(0, begin, end - begin),
                     .narrow = {},
                     .begin = begin - own_.begin,
                     .size = end - begin,
                     .decays = decays});
  };
  for (const auto& slot : slots_) add(slot.begin, slot.begin + slot.size, slot.decays);
  // A rank may have nothing else; without a gradient no update would be made there.
  add(size_, values_.numel(), false);
  return out;
}

void AdamW::squares(const Tensor& to) const {
  ops::gpu()->squares(grads_.narrow(0, own_.begin, own_.size()), kPiece, to);
}

AdamW::Copies::Copies(AdamW& owner, torch::Dtype dtype) : owner_(owner) {
  const torch::NoGradGuard no_grad;
  if (!owner.flat_copies_.defined() || owner.flat_copies_.scalar_type() != dtype) {
    owner.flat_copies_ = torch::empty(owner.values_.sizes(), owner.values_.options().dtype(dtype));
    for (auto& slot : owner.slots_)
      if (slot.parameter.dim() >= 2)
        slot.copy = part(owner.flat_copies_, slot.begin, slot.parameter.sizes().vec())
                        .detach()
                        .requires_grad_();
  }
  owner.flat_copies_.copy_(owner.values_);
  owner.lend(true);
}

void AdamW::lend(bool copies) {
  for (const auto& reader : readers_)
    reader.layer->copy = copies ? slots_[reader.slot].copy : Tensor();
  for (const auto& seated : packs_)
    seated.pack->lend(copies ? part(flat_copies_, seated.begin, seated.shape) : Tensor());
}

ops::GpuAdamW AdamW::on_gpu(const Tensor& settings, const Tensor& report) const {
  return {.values = values_.narrow(0, own_.begin, own_.size()),
          .m = m_,
          .v = v_,
          .beta1 = beta1_,
          .beta2 = beta2_,
          .eps = eps_,
          .settings = settings,
          .report = report,
          .squares = grads_.defined()
                         ? torch::zeros({ranks_.count() * pieces_of_slice()}, report.options())
                         : Tensor()};
}

void AdamW::fill_settings(double lr, double clip, double* settings) const {
  const auto t = double(t_ + 1);
  settings[ops::GpuAdamW::kRate] = lr / (1 - std::pow(beta1_, t));
  settings[ops::GpuAdamW::kRoot] = std::sqrt(1 - std::pow(beta2_, t));
  settings[ops::GpuAdamW::kKeep] = 1 - lr * decay_;
  settings[ops::GpuAdamW::kClip] = clip;
}

std::map<std::string, Tensor> AdamW::state() const {
  const auto whole = [&](const Tensor& own) {
    Tensor all = own;
    if (ranks_.count() > 1) {
      all = torch::zeros_like(values_);
      all.narrow(0, own_.begin, own_.size()).copy_(own);
      ranks_.share_slices(all);
    }
    return all.narrow(0, 0, size_);
  };
  std::map<std::string, Tensor> out = {
      {"m", whole(m_)}, {"v", whole(v_)}, {"step", torch::tensor({t_}, torch::kLong)}};
  if (!average_->any()) return out;
  // A copy: while a checkpoint is made the weights are the average.
  out["weights"] = values_.narrow(0, 0, size_).clone();
  out["average"] = average_->values().narrow(0, 0, size_);
  return out;
}

void AdamW::load(const std::map<std::string, Tensor>& state, const std::string& where) {
  const auto find = [&](const char* key, torch::Dtype dtype, int64_t size) {
    const auto found = state.find(key);
    check(found != state.end(), where, ": the optimiser's '", key, "' is missing");
    const Tensor& t = found->second;
    check(t.scalar_type() == dtype && t.numel() == size, where, ": the optimiser's '", key,
          "' must hold ", size, " values in ", dtype, ", got ", t.numel(), " in ", t.scalar_type());
    return t.reshape({size});
  };
  const Tensor m = find("m", torch::kFloat32, size_), v = find("v", torch::kFloat32, size_);
  const Tensor step = find("step", torch::kLong, 1);
  const int64_t there = std::min(own_.end, size_) - std::min(own_.begin, size_);
  for (auto [to, from] : {std::pair(m_, m), std::pair(v_, v)})
    to.narrow(0, 0, there).copy_(from.narrow(0, std::min(own_.begin, size_), there));
  t_ = step.item<int64_t>();
  if (!average_->any()) return;
  const torch::NoGradGuard no_grad;
  for (auto [to, key] : {std::pair(values_, "weights"), std::pair(average_->values(), "average")})
    to.narrow(0, 0, size_).copy_(find(key, torch::kFloat32, size_));
}

}  // namespace lrnn::training
