#include <algorithm>
#include <functional>
#include <map>

#include "automata/read/regex.h"
#include "automata/read/source.h"
#include "base/error.h"
#include "base/text.h"

// Automata with a name, for examples and tests: languages, counters, groups, arithmetic, all maps.
namespace lrnn::automata {
namespace {

using Names = std::vector<std::string>;

Automaton language(const char* regex, const char* alphabet) {
  return from_regex(regex, alphabet_of(alphabet));
}

// Everything that words lead to from `start`; the state itself is the key.
template <class State>
Automaton explore(const Names& symbols, State start,
                  const std::function<State(const State&, const std::string&)>& step,
                  const std::function<bool(const State&)>& accepts) {
  std::map<State, int32_t> number = {{start, 0}};
  std::vector<State> order = {start};
  Automaton a;
  for (size_t i = 0; i < order.size(); ++i)
    for (const auto& x : symbols) {
      const State next = step(order[i], x);
      const auto [at, fresh] = number.emplace(next, static_cast<int32_t>(order.size()));
      if (fresh) order.push_back(next);
      a.next.push_back(at->second);
    }
  a.states = static_cast<int64_t>(order.size()), a.symbols = static_cast<int64_t>(symbols.size());
  for (const auto& s : order) a.accept.push_back(accepts(s));
  a.symbol_names = symbols;
  return minimal(a);
}

// Counts a symbol's weight modulo m; an unnamed symbol resets to 0.
Automaton counter(int m, const std::vector<std::pair<std::string, int>>& weights,
                  const std::string& reset = "", int accepting = 0) {
  Names symbols;
  std::map<std::string, int> weight;
  for (const auto& [x, w] : weights) symbols.push_back(x), weight[x] = w;
  if (!reset.empty()) symbols.push_back(reset);
  return explore<int>(
      symbols, 0,
      [=](const int& q, const std::string& x) {
        return x == reset ? 0 : ((q + weight.at(x)) % m + m) % m;
      },
      [=](const int& q) { return q == accepting; });
}

Automaton two_parities(bool with_reset) {
  Names symbols = {"0", "1"};
  if (with_reset) symbols.push_back("r");
  return explore<int>(
      symbols, 0,
      [](const int& q, const std::string& x) { return x == "r" ? 0 : q ^ (x == "0" ? 1 : 2); },
      [](const int& q) { return q == 0; });
}

// Brackets that close in order, at most `depth` of them open.
Automaton brackets(size_t depth, const std::string& open, const std::string& close) {
  Names symbols;
  for (size_t i = 0; i < open.size(); ++i)
    symbols.push_back(open.substr(i, 1)), symbols.push_back(close.substr(i, 1));
  return explore<std::string>(
      symbols, "",
      [=](const std::string& q, const std::string& x) -> std::string {
        if (q == "sink") return q;
        if (open.find(x) != std::string::npos) return q.size() < depth ? q + x : "sink";
        const bool fits = !q.empty() && open.find(q.back()) == close.find(x);
        return fits ? q.substr(0, q.size() - 1) : "sink";
      },
      [](const std::string& q) { return q.empty(); });
}

// Numbers below m with + - *, worked out from left to right; accepts the value 0.
Automaton arithmetic(int m) {
  Names symbols;
  for (int d = 0; d < m; ++d) symbols.push_back(std::to_string(d));
  for (const char* op : {"+", "-", "*"}) symbols.push_back(op);
  using State = std::pair<int, std::string>;  // value and the operator that waits, "" for none
  return explore<State>(
      symbols, {0, "+"},
      [=](const State& q, const std::string& x) -> State {
        if (x == "+" || x == "-" || x == "*") return {q.first, x};
        const int d = std::stoi(x);
        const int value = q.second == "+"   ? q.first + d
                          : q.second == "-" ? q.first - d
                          : q.second == "*" ? q.first * d
                                            : d;
        return {(value % m + m) % m, ""};
      },
      [](const State& q) { return q.first == 0; });
}

// Points moved by maps: states are tracked.
Automaton moves(int n, const Names& names, const std::vector<std::vector<int>>& maps) {
  auto a = Automaton::from(n, static_cast<int64_t>(maps.size()), [&](int64_t q, int64_t x) {
    return maps[static_cast<size_t>(x)][static_cast<size_t>(q)];
  });
  a.symbol_names = names;
  return reachable(a);
}

std::vector<int> turn(int n) {
  std::vector<int> out;
  for (int i = 0; i < n; ++i) out.push_back((i + 1) % n);
  return out;
}
// 0 goes to `first`, 1 goes to 0, the others stay.
std::vector<int> front(int n, int first) {
  std::vector<int> out = {first, 0};
  for (int i = 2; i < n; ++i) out.push_back(i);
  return out;
}
Automaton symmetric(int n) { return moves(n, {"s", "c"}, {front(n, 1), turn(n)}); }
// A turn, a swap, and a map that merges two points generate every map.
Automaton all_maps(int n) { return moves(n, {"c", "s", "k"}, {turn(n), front(n, 1), front(n, 0)}); }

}  // namespace

const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"tomita1", "1*", true, [] { return language("1*", "01"); }},
      {"tomita2", "(10)*", true, [] { return language("(10)*", "01"); }},
      {"tomita3", "no odd run of 1s is followed by an odd run of 0s", true,
       [] { return language("!(((0|1)*0)*1(11)*(0(0|1)*1)*0(00)*(1(0|1)*)*)", "01"); }},
      {"tomita4", "no 000", true, [] { return language("!(.*000.*)", "01"); }},
      {"tomita5", "an even number of 0s and an even number of 1s", true,
       [] { return two_parities(false); }},
      {"tomita6", "as many 0s as 1s, modulo 3", true,
       [] {
         return counter(3, {{"0", 1}, {"1", -1}});
       }},
      {"tomita7", "0*1*0*1*", true, [] { return language("0*1*0*1*", "01"); }},
      {"aa", "(aa)*", true, [] { return language("(aa)*", "a"); }},
      {"aaaa", "(aaaa)*", true, [] { return language("(aaaa)*", "a"); }},
      {"abab", "(abab)*", true, [] { return language("(abab)*", "ab"); }},
      {"parity", "an odd number of 1s", true,
       [] {
         return counter(2, {{"0", 0}, {"1", 1}}, "", 1);
       }},
      {"even_pairs", "the first letter is the last", true,
       [] { return language("()|a|b|a.*a|b.*b", "ab"); }},
      {"cycle_navigation", "left, stay and right on a ring of 5", true,
       [] {
         return counter(5, {{"L", -1}, {"S", 0}, {"R", 1}});
       }},
      {"mod3", "the number of 1s is a multiple of 3", true,
       [] {
         return counter(3, {{"0", 0}, {"1", 1}});
       }},
      {"mod4", "the number of 1s is a multiple of 4", true,
       [] {
         return counter(4, {{"0", 0}, {"1", 1}});
       }},
      {"mod5", "the number of 1s is a multiple of 5", true,
       [] {
         return counter(5, {{"0", 0}, {"1", 1}});
       }},
      {"mod6", "the number of 1s is a multiple of 6", true,
       [] {
         return counter(6, {{"0", 0}, {"1", 1}});
       }},
      {"mod7", "the number of 1s is a multiple of 7", true,
       [] {
         return counter(7, {{"0", 0}, {"1", 1}});
       }},
      {"mod3_reset", "a counter modulo 3 with a reset", true,
       [] {
         return counter(3, {{"i", 1}}, "r");
       }},
      {"two_parities_reset", "two parities with a reset", true, [] { return two_parities(true); }},
      {"contains_aba", "aba somewhere", true, [] { return language(".*aba.*", "ab"); }},
      {"ends_with_aba", "aba at the end", true, [] { return language(".*aba", "ab"); }},
      {"contains_rotations", "abc, bca or cab somewhere", true,
       [] { return language(".*(abc|bca|cab).*", "abc"); }},
      {"ab_d_bc", "(a|b)*d(b|c)*", true, [] { return language("(a|b)*d(b|c)*", "abcd"); }},
      {"012_02", "(0|1|2)*02*", true, [] { return language("(0|1|2)*02*", "012"); }},
      {"abcde", "aa*bb*cc*dd*ee*", true, [] { return language("aa*bb*cc*dd*ee*", "abcde"); }},
      {"flip_flop", "remembers the last write", true,
       [] {
         return explore<int>(
             {"w0", "w1", "i"}, 0,
             [](const int& q, const std::string& x) { return x == "i" ? q : x == "w1"; },
             [](const int& q) { return q == 1; });
       }},
      {"dyck1_1", "brackets, at most 1 open", true, [] { return brackets(1, "(", ")"); }},
      {"dyck1_2", "brackets, at most 2 open", true, [] { return brackets(2, "(", ")"); }},
      {"dyck1_3", "brackets, at most 3 open", true, [] { return brackets(3, "(", ")"); }},
      {"dyck1_4", "brackets, at most 4 open", true, [] { return brackets(4, "(", ")"); }},
      {"dyck2_2", "two kinds of brackets, at most 2 open", true,
       [] { return brackets(2, "([", ")]"); }},
      {"dyck2_3", "two kinds of brackets, at most 3 open", true,
       [] { return brackets(3, "([", ")]"); }},
      {"s3_points", "3 points, a swap and a turn", false, [] { return symmetric(3); }},
      {"s4_points", "4 points, a swap and a turn", false, [] { return symmetric(4); }},
      {"a5_points", "5 points, a turn of three and a turn of all", false,
       [] {
         return moves(5, {"t", "c"}, {{1, 2, 0, 3, 4}, turn(5)});
       }},
      {"s5_points", "5 points, a swap and a turn", false, [] { return symmetric(5); }},
      {"arithmetic3", "+ - * modulo 3 from left to right, value 0", true,
       [] { return arithmetic(3); }},
      {"arithmetic5", "+ - * modulo 5 from left to right, value 0", true,
       [] { return arithmetic(5); }},
      {"third_from_end", "the third letter from the end is a", true,
       [] { return language("(a|b)*a(a|b)(a|b)", "ab"); }},
      {"ab_and_ba", "ab and ba, apart", true,
       [] { return language(".*ab.*ba.*|.*ba.*ab.*", "ab"); }},
      {"t3", "every map of 3 points", false, [] { return all_maps(3); }},
      {"t4", "every map of 4 points", false, [] { return all_maps(4); }},
      {"t5", "every map of 5 points", false, [] { return all_maps(5); }},
  };
  return all;
}

const Example& find_example(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& e : examples()) {
    if (e.name == name) return e;
    names.push_back(e.name);
  }
  std::string list;
  for (const auto& n : names) list += (list.empty() ? "" : " ") + n;
  throw Error(cat("there is no example '", name, "'"),
              did_you_mean(name, names, cat("examples are ", list)));
}

}  // namespace lrnn::automata
