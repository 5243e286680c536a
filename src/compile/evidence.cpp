#include <algorithm>
#include <map>
#include <numeric>

#include "automata/automaton.h"
#include "compile/verdict.h"

namespace lrnn::compile {
namespace {

constexpr size_t kMostWords = 20000;
constexpr size_t kMostWork = 30000000;  // letters read, for all states

int64_t two_part(int64_t n) { return n & -n; }

int64_t odd_prime_of(int64_t n) {
  n /= two_part(n);
  for (int64_t p = 3; p <= n; p += 2)
    if (n % p == 0) return p;
  return 0;
}

// Words by length, one for each map of the states, until enough are seen.
void turning_words(const Automaton& a, Evidence& out) {
  std::vector<int> identity(static_cast<size_t>(a.states));
  std::iota(identity.begin(), identity.end(), 0);
  std::map<std::vector<int>, size_t> seen = {{identity, 0}};
  struct Word {
    const std::vector<int>* map;
    size_t parent;
    int64_t letter;
  };
  std::vector<Word> words = {{&seen.begin()->first, 0, -1}};
  const auto text = [&](size_t i) {
    std::vector<int64_t> letters;
    for (; i != 0; i = words[i].parent) letters.push_back(words[i].letter);
    std::string out;
    for (auto x = letters.rbegin(); x != letters.rend(); ++x) {
      if (!out.empty() && a.symbol_name(*x).size() > 1) out += ' ';
      out += a.symbol_name(*x);
    }
    return out;
  };
  size_t work = 0;
  for (size_t i = 0; i < words.size(); ++i)
    for (int64_t x = 0; x < a.symbols; ++x) {
      work += identity.size();
      if (words.size() >= kMostWords || work > kMostWork) return;
      auto map = *words[i].map;
      for (int& s : map) s = static_cast<int>(a.step(s, x));
      const auto [at, fresh] = seen.emplace(std::move(map), words.size());
      if (!fresh) continue;
      words.push_back({&at->first, i, x});
      const int64_t p = automata::period(at->first);
      if (p > 1 && out.turning_word.empty())
        out.turning_word = text(words.size() - 1), out.turning_period = p;
      out.longest_two_power = std::max(out.longest_two_power, two_part(p));
      if (out.odd_prime == 0) out.odd_prime = odd_prime_of(p);
    }
}

// How often one can pass to the squares and commutators before nothing is left.
int64_t halvings_of(const PermutationGroup& group) {
  std::vector<Permutation> members;
  for (int64_t g = 0; g < group.order(); ++g) members.push_back(group.element(g));
  for (int64_t steps = 0;; ++steps) {
    if (members.size() == 1) return steps;
    // In a 2-group squares generate the commutators, too.
    std::vector<Permutation> squares;
    for (const auto& p : members) squares.push_back(automata::compose(p, p));
    const PermutationGroup smaller(group.degree(), squares);
    if (smaller.order() == static_cast<int64_t>(members.size())) return -1;
    members.clear();
    for (int64_t g = 0; g < smaller.order(); ++g) members.push_back(smaller.element(g));
  }
}

}  // namespace

Evidence evidence(const Automaton& a, const Class& c, const Cascade& cascade) {
  Evidence out;
  turning_words(a, out);
  for (const int64_t p : c.period_primes)
    if (p > 2 && out.odd_prime == 0) out.odd_prime = p;
  for (int64_t x = 0; x < a.symbols; ++x) {
    const int64_t p = c.letter_periods[static_cast<size_t>(x)];
    if (p <= 2 || out.one_letter_turns_thrice) continue;
    out.one_letter_turns_thrice = true;
    out.restless_letter = a.symbol_name(x);
  }
  if (!c.group || cascade.classes().empty()) return out;
  const auto& type = cascade.classes()[0];
  const automata::StabiliserChain chain(type.points, type.point_generators);
  if (c.two_group && chain.order() <= 4096)
    out.halvings = halvings_of(PermutationGroup(type.points, chain.generators()));
  const bool fives = std::any_of(c.letter_periods.begin(), c.letter_periods.end(),
                                 [](int64_t p) { return p == 5; });
  out.five_cycle_in_s5 = fives && automata::group_name(type.points, chain.generators()) == "S5";
  return out;
}

}  // namespace lrnn::compile
