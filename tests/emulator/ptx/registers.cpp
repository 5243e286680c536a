#include <algorithm>
#include <bit>

#include "tests/emulator/ptx/text.h"

// Which registers may share a place: liveness over the blocks of the control flow, then one walk
// over the text in which a register keeps its place from where it is first alive to where it is
// last. Kernels name twenty thousand registers and need a few hundred places.
namespace lrnn::emulator {
namespace {

// The first and the last statement at which a register is alive.
struct Life {
  uint32_t first = ~0u, last = 0;
  void reach(uint32_t at) { first = std::min(first, at), last = std::max(last, at); }
};

// f(register, whether it is set) for all that a statement names, sources first.
template <class F> void each_operand(const Operand& o, bool sets, F&& f) {
  if (o.reg >= 0) f(o.reg, sets && o.kind != Operand::kAddress);
  if (o.second >= 0) f(o.second, sets);
  for (const Operand& item : o.items) each_operand(item, sets && o.kind == Operand::kList, f);
}
template <class F> void each_register(const Statement& s, F&& f) {
  const auto begins = [&](std::string_view with) { return s.opcode.starts_with(with); };
  if (s.guard >= 0) f(s.guard, false);
  for (size_t i = 1; i < s.operands.size(); ++i) each_operand(s.operands[i], false, f);
  if (s.operands.empty()) return;
  const bool reads_first = begins("st.") || begins("bar") || begins("red") || begins("cp.");
  if (begins("wgmma")) each_operand(s.operands[0], false, f);  // sums are added to
  each_operand(s.operands[0], !reads_first, f);
}

class Bits {
 public:
  explicit Bits(size_t count) : words_((count + 63) / 64) {}
  void set(size_t i) { words_[i / 64] |= uint64_t(1) << (i % 64); }
  bool has(size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  // *this |= those of `from` that are not in `but`; whether that added any.
  bool add(const Bits& from, const Bits* but = nullptr) {
    bool added = false;
    for (size_t w = 0; w < words_.size(); ++w) {
      const uint64_t more = from.words_[w] & ~(but ? but->words_[w] : 0) & ~words_[w];
      added = added || more;
      words_[w] |= more;
    }
    return added;
  }
  template <class F> void each(F&& f) const {
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint64_t rest = words_[w]; rest; rest &= rest - 1)
        f(w * 64 + size_t(std::countr_zero(rest)));
  }

 private:
  std::vector<uint64_t> words_;
};

struct Block {
  uint32_t begin, end;
  std::vector<uint32_t> next;  // blocks
  Bits read, set, alive_in, alive_out;
};

bool is_branch(const Statement& s) { return s.opcode.starts_with("bra"); }
bool ends(const Statement& s) { return s.opcode == "ret" || s.opcode == "exit"; }

std::vector<Block> blocks_of(const Text& text) {
  const auto count = uint32_t(text.statements.size());
  std::vector<uint32_t> begins = {0};
  for (const auto& [name, at] : text.labels)
    if (at < count) begins.push_back(at);
  for (uint32_t i = 0; i + 1 < count; ++i)
    if (is_branch(text.statements[i]) || ends(text.statements[i])) begins.push_back(i + 1);
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  const auto block_at = [&](uint32_t at) {
    return uint32_t(std::lower_bound(begins.begin(), begins.end(), at) - begins.begin());
  };
  std::vector<Block> blocks;
  const Bits none(text.registers.size());
  for (size_t b = 0; b < begins.size(); ++b) {
    Block block{begins[b], b + 1 < begins.size() ? begins[b + 1] : count, {}, none, none, none,
                none};
    for (uint32_t i = block.begin; i < block.end; ++i) {
      const bool guarded = text.statements[i].guard >= 0;
      each_register(text.statements[i], [&](int reg, bool sets) {
        // Under a guard the old value may stay.
        if ((!sets || guarded) && !block.set.has(size_t(reg))) block.read.set(size_t(reg));
        if (sets && !guarded) block.set.set(size_t(reg));
      });
    }
    if (block.begin < block.end) {
      const Statement& last = text.statements[block.end - 1];
      if (is_branch(last) && text.labels.at(last.operands[0].name) < count)
        block.next.push_back(block_at(text.labels.at(last.operands[0].name)));
      const bool leaves = (is_branch(last) || ends(last)) && last.guard < 0;
      if (!leaves && b + 1 < begins.size()) block.next.push_back(uint32_t(b + 1));
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::vector<Life> lives_of(const Text& text) {
  auto blocks = blocks_of(text);
  for (bool changed = true; changed;) {
    changed = false;
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      for (const uint32_t next : block->next)
        changed = block->alive_out.add(blocks[next].alive_in) || changed;
      changed = block->alive_in.add(block->read) || changed;
      changed = block->alive_in.add(block->alive_out, &block->set) || changed;
    }
  }
  std::vector<Life> lives(text.registers.size());
  for (const Block& block : blocks) {
    block.alive_in.each([&](size_t r) { lives[r].reach(block.begin); });
    block.alive_out.each([&](size_t r) { lives[r].reach(block.end - 1); });
    for (uint32_t i = block.begin; i < block.end; ++i)
      each_register(text.statements[i], [&](int reg, bool) { lives[size_t(reg)].reach(i); });
  }
  // Special registers are set before the first statement.
  for (size_t r = 0; r < lives.size(); ++r)
    if (!text.registers[r].special.empty()) lives[r].reach(0);
  return lives;
}

}  // namespace

size_t place_registers(const Text& text, std::vector<uint32_t>& places) {
  const std::vector<Life> lives = lives_of(text);
  std::vector<size_t> order;
  for (size_t i = 0; i < lives.size(); ++i)
    if (lives[i].first != ~0u) order.push_back(i);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return lives[a].first < lives[b].first; });
  places.assign(lives.size(), 0);
  constexpr uint32_t kLanes = 32;
  uint32_t end = 0;
  std::vector<uint32_t> idle[2];  // places of 32 and of 64 bits a lane
  std::vector<size_t> alive;      // a heap, the one that ends first on top
  const auto ends_later = [&](size_t a, size_t b) { return lives[a].last > lives[b].last; };
  for (const size_t i : order) {
    // A place is free from the statement after its last: what is set never meets what is read.
    while (!alive.empty() && lives[alive.front()].last < lives[i].first) {
      const size_t over = alive.front();
      std::pop_heap(alive.begin(), alive.end(), ends_later);
      alive.pop_back();
      idle[text.registers[over].width == 64].push_back(places[over]);
    }
    const bool wide = text.registers[i].width == 64;
    if (!idle[wide].empty()) {
      places[i] = idle[wide].back();
      idle[wide].pop_back();
    } else {
      places[i] = end;
      end += wide ? 2 * kLanes : kLanes;
    }
    alive.push_back(i);
    std::push_heap(alive.begin(), alive.end(), ends_later);
  }
  return end;
}

}  // namespace lrnn::emulator
