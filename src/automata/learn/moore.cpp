#include "automata/learn/moore.h"

#include <map>
#include <set>

#include "base/error.h"

namespace lrnn::automata {
namespace {

// Refines by the blocks of the successors until nothing changes.
std::vector<int64_t> blocks_of(const Moore& m) {
  std::map<int64_t, int64_t> answers;
  std::vector<int64_t> block;
  for (const int64_t x : m.answer)
    block.push_back(answers.emplace(x, int64_t(answers.size())).first->second);
  for (size_t count = answers.size();;) {
    std::map<std::vector<int64_t>, int64_t> number;
    std::vector<int64_t> next;
    for (int64_t s = 0; s < m.automaton.states; ++s) {
      std::vector<int64_t> key = {block[at(s)]};
      for (int64_t x = 0; x < m.automaton.symbols; ++x)
        key.push_back(block[at(m.automaton.step(s, x))]);
      next.push_back(number.emplace(std::move(key), int64_t(number.size())).first->second);
    }
    if (number.size() == count) return block;
    count = number.size(), block = std::move(next);
  }
}

}  // namespace

Moore minimal(const Moore& m) {
  const auto block = blocks_of(m);
  std::map<int64_t, int64_t> member;
  for (int64_t s = 0; s < m.automaton.states; ++s) member.emplace(block[at(s)], s);
  auto merged = Automaton::from(
      int64_t(member.size()), m.automaton.symbols,
      [&](int64_t b, int64_t x) { return block[at(m.automaton.step(member.at(b), x))]; });
  merged.start = block[at(m.automaton.start)];
  merged.symbol_names = m.automaton.symbol_names;
  // `reachable` renumbers; names carry the old numbers along.
  for (int64_t b = 0; b < merged.states; ++b) merged.state_names.push_back(std::to_string(b));
  Moore out{reachable(merged), {}};
  for (const auto& old : out.automaton.state_names)
    out.answer.push_back(m.answer[at(member.at(std::stoll(old)))]);
  out.automaton.state_names.clear();
  return out;
}

std::optional<Word> first_difference(const Moore& a, const Moore& b) {
  lrnn::check(a.automaton.symbols == b.automaton.symbols, "automata over ", a.automaton.symbols,
              " and ", b.automaton.symbols, " symbols cannot be compared");
  struct Pair {
    int64_t s, t;
    size_t parent;
    int64_t letter;
  };
  std::vector<Pair> queue = {{a.automaton.start, b.automaton.start, 0, -1}};
  std::set<std::pair<int64_t, int64_t>> seen = {{queue[0].s, queue[0].t}};
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto [s, t, parent, letter] = queue[i];
    if (a.answer[at(s)] != b.answer[at(t)]) {
      Word out;
      for (size_t j = i; j > 0; j = queue[j].parent) out.insert(out.begin(), queue[j].letter);
      return out;
    }
    for (int64_t x = 0; x < a.automaton.symbols; ++x) {
      const Pair to{a.automaton.step(s, x), b.automaton.step(t, x), i, x};
      if (seen.emplace(to.s, to.t).second) queue.push_back(to);
    }
  }
  return {};
}

Automaton named(const Moore& m, const std::function<std::string(int64_t)>& name) {
  Automaton out = m.automaton;
  out.state_names.clear(), out.accept.clear();
  std::vector<std::string> said;
  for (const int64_t x : m.answer) said.push_back(name(x));
  std::set<std::string> taken(said.begin(), said.end()), given;
  std::map<std::string, int64_t> count;
  bool recogniser = true;
  for (const auto& text : said) {
    recogniser &= text == "accept" || text == "reject";
    std::string unique = text;
    // An answer may itself look like another one with a number.
    while (!given.insert(unique).second || (unique != text && taken.contains(unique)))
      unique = cat(text, "#", ++count.emplace(text, 1).first->second);
    out.state_names.push_back(unique);
  }
  if (recogniser)
    for (const auto& text : said) out.accept.push_back(text == "accept");
  return out;
}

}  // namespace lrnn::automata
