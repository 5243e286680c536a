#include <numeric>

#include "automata/automaton.h"
#include "base/error.h"

// Hopcroft's algorithm on a partition that is kept as one array of states with block boundaries:
// splitting a block moves the marked states to its front.
namespace lrnn::automata {
namespace {

class Partition {
 public:
  explicit Partition(size_t n)
      : states_(n), place_(n), block_(n, 0), end_{n}, begin_{0}, marked_{0} {
    std::iota(states_.begin(), states_.end(), size_t{0});
    std::iota(place_.begin(), place_.end(), size_t{0});
  }

  size_t blocks() const { return begin_.size(); }
  size_t block(size_t s) const { return block_[s]; }
  size_t size(size_t b) const { return end_[b] - begin_[b]; }
  size_t marked(size_t b) const { return marked_[b]; }
  std::vector<size_t> members(size_t b) const {
    return {states_.begin() + static_cast<std::ptrdiff_t>(begin_[b]),
            states_.begin() + static_cast<std::ptrdiff_t>(end_[b])};
  }

  void mark(size_t s) {
    const size_t b = block_[s], to = begin_[b] + marked_[b];
    if (place_[s] < to) return;
    const size_t other = states_[to], from = place_[s];
    states_[to] = s, place_[s] = to;
    states_[from] = other, place_[other] = from;
    ++marked_[b];
  }

  // Makes the smaller of the marked and unmarked states a block of its own and names it; blocks()
  // when there is nothing to split.
  size_t split(size_t b) {
    const size_t m = marked_[b];
    marked_[b] = 0;
    if (m == 0 || m == size(b)) return blocks();
    const size_t middle = begin_[b] + m, fresh = blocks();
    if (m <= size(b) - m) {
      begin_.push_back(begin_[b]), end_.push_back(middle), begin_[b] = middle;
    } else {
      begin_.push_back(middle), end_.push_back(end_[b]), end_[b] = middle;
    }
    marked_.push_back(0);
    for (size_t i = begin_[fresh]; i < end_[fresh]; ++i) block_[states_[i]] = fresh;
    return fresh;
  }

 private:
  std::vector<size_t> states_, place_, block_, end_, begin_, marked_;
};

// Who leads to s on symbol x: sources[first[s * symbols + x] .. first[s * symbols + x + 1]).
struct Backwards {
  std::vector<size_t> first, sources;
  explicit Backwards(const Automaton& a) : first(a.next.size() + 1, 0), sources(a.next.size()) {
    const auto symbols = static_cast<size_t>(a.symbols);
    const auto slot = [&](size_t i) {
      return static_cast<size_t>(a.next[i]) * symbols + i % symbols;
    };
    for (size_t i = 0; i < a.next.size(); ++i) ++first[slot(i) + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    auto at = first;
    for (size_t i = 0; i < a.next.size(); ++i) sources[at[slot(i)]++] = i / symbols;
  }
};

Partition equivalent_states(const Automaton& a) {
  const auto n = static_cast<size_t>(a.states), symbols = static_cast<size_t>(a.symbols);
  Partition p(n);
  for (size_t s = 0; s < n; ++s)
    if (a.accept[s]) p.mark(s);
  p.split(0);
  const Backwards back(a);
  // A block is split again after it has become smaller, so the queue holds blocks, not their
  // states.
  std::vector<size_t> queue;
  for (size_t b = 0; b < p.blocks(); ++b) queue.push_back(b);
  while (!queue.empty()) {
    const size_t splitter = queue.back();
    queue.pop_back();
    const auto members = p.members(splitter);
    for (size_t x = 0; x < symbols; ++x) {
      std::vector<size_t> touched;
      for (const size_t s : members)
        for (size_t i = back.first[s * symbols + x]; i < back.first[s * symbols + x + 1]; ++i) {
          const size_t source = back.sources[i];
          if (p.marked(p.block(source)) == 0) touched.push_back(p.block(source));
          p.mark(source);
        }
      for (const size_t b : touched) {
        const size_t fresh = p.split(b);
        if (fresh == p.blocks()) continue;
        // The larger half keeps the block's own entry, or needs none: the smaller one suffices.
        queue.push_back(fresh);
      }
    }
  }
  return p;
}

}  // namespace

Automaton minimal(const Automaton& a) {
  lrnn::check(!a.accept.empty(), "only an automaton with accepting states has a smallest one");
  const Automaton r = reachable(a);
  const Partition p = equivalent_states(r);
  std::vector<int64_t> member(p.blocks(), 0);
  for (int64_t s = 0; s < r.states; ++s) member[p.block(static_cast<size_t>(s))] = s;
  const auto block = [&](int64_t s) {
    return static_cast<int64_t>(p.block(static_cast<size_t>(s)));
  };
  auto merged = Automaton::from(
      static_cast<int64_t>(p.blocks()), r.symbols,
      [&](int64_t b, int64_t x) { return block(r.step(member[static_cast<size_t>(b)], x)); });
  merged.start = block(r.start);
  merged.symbol_names = r.symbol_names;
  for (const int64_t s : member) merged.accept.push_back(r.accept[static_cast<size_t>(s)]);
  auto out = reachable(merged);
  out.state_names.clear();
  return out;
}

}  // namespace lrnn::automata
