#include <gtest/gtest.h>

#include <map>
#include <set>

#include "automata/automaton.h"
#include "base/random.h"

namespace lrnn::automata {
namespace {

// Many states, few of them different: copies of a small automaton, entered at random.
Automaton with_copies(uint64_t seed) {
  Random random(61, 0, seed);
  const int64_t small = random.between(1, 12), copies = random.between(1, 6),
                m = random.between(1, 3);
  const auto core =
      Automaton::from(small, m, [&](int64_t, int64_t) { return random.between(0, small - 1); });
  auto a = Automaton::from(small * copies, m, [&](int64_t s, int64_t x) {
    return core.step(s % small, x) + small * random.between(0, copies - 1);
  });
  std::vector<uint8_t> marks;
  for (int64_t s = 0; s < small; ++s) marks.push_back(random.below(3) == 0);
  for (int64_t s = 0; s < a.states; ++s) a.accept.push_back(marks[static_cast<size_t>(s % small)]);
  return a;
}

// Moore's way: refine by the blocks of the successors until nothing changes.
std::vector<size_t> refined(const Automaton& a) {
  std::vector<size_t> block(a.accept.begin(), a.accept.end());
  for (;;) {
    std::map<std::vector<size_t>, size_t> number;
    std::vector<size_t> next;
    for (size_t s = 0; s < block.size(); ++s) {
      std::vector<size_t> key = {block[s]};
      for (int64_t x = 0; x < a.symbols; ++x)
        key.push_back(block[static_cast<size_t>(a.step(static_cast<int64_t>(s), x))]);
      next.push_back(number.emplace(key, number.size()).first->second);
    }
    if (number.size() == std::set<size_t>(block.begin(), block.end()).size()) return block;
    block = next;
  }
}

TEST(Minimal, HasOneStatePerClassOfMoore) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const auto a = reachable(with_copies(seed));
    const auto block = refined(a);
    const auto small = minimal(a);
    ASSERT_EQ(small.states,
              static_cast<int64_t>(std::set<size_t>(block.begin(), block.end()).size()))
        << seed;
    Random random(62, 0, seed);
    for (int i = 0; i < 30; ++i) {
      std::vector<int64_t> word;
      for (uint64_t n = random.below(60); n > 0; --n)
        word.push_back(random.between(0, a.symbols - 1));
      ASSERT_EQ(small.accepts(word), a.accepts(word)) << seed;
    }
    // Nothing is left to merge, and the numbering is the canonical one.
    const auto again = minimal(small);
    EXPECT_EQ(again.next, small.next);
    EXPECT_EQ(small.start, 0);
  }
}

TEST(Reachable, NumbersStatesAsWordsMeetThem) {
  const auto a = reachable(with_copies(7));
  int64_t met = 0;
  for (const int32_t to : a.next) {
    EXPECT_LE(to, met + 1);
    met = std::max<int64_t>(met, to);
  }
  EXPECT_EQ(met, a.states - 1);
}

}  // namespace
}  // namespace lrnn::automata
