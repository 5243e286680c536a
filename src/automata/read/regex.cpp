#include "automata/read/regex.h"

#include <map>
#include <set>

#include "automata/read/nfa.h"
#include "base/error.h"
#include "base/text.h"

namespace lrnn::automata {
namespace {

constexpr size_t kMostSymbols = 256;

Automaton complement_of(Automaton a) {
  for (auto& mark : a.accept) mark = !mark;
  return a;
}

Automaton intersection(const Automaton& a, const Automaton& b, Budget& budget) {
  budget.spend(a.states * b.states * a.symbols);
  if (a.states * b.states > 100 * Budget::kMostStates)
    throw Error("an intersection '&' has too many states", "intersect smaller expressions");
  auto pairs = Automaton::from(a.states * b.states, a.symbols, [&](int64_t s, int64_t x) {
    return a.step(s / b.states, x) * b.states + b.step(s % b.states, x);
  });
  pairs.start = a.start * b.states + b.start;
  for (int64_t s = 0; s < pairs.states; ++s)
    pairs.accept.push_back(a.accept[static_cast<size_t>(s / b.states)] &&
                           b.accept[static_cast<size_t>(s % b.states)]);
  return minimal(pairs);
}

class RegexBuilder {
 public:
  RegexBuilder(std::vector<RegexNode> nodes, int64_t symbols)
      : nodes_(std::move(nodes)), symbols_(symbols) {}

  Automaton whole() { return automaton(nodes_.size() - 1); }

 private:
  Automaton automaton(size_t node) {
    Nfa nfa(symbols_);
    return nfa.determinise(build(nfa, node), budget_);
  }

  // '!' and '&' work on deterministic automata; a repeat may ask for the same one many times.
  const Automaton& deterministic(size_t node) {
    const auto found = known_.find(node);
    if (found != known_.end()) return found->second;
    const auto& n = nodes_[node];
    Automaton out = automaton(n.children[0]);
    if (n.kind == RegexNode::kNot) out = complement_of(std::move(out));
    for (size_t i = 1; i < n.children.size(); ++i)
      out = intersection(out, automaton(n.children[i]), budget_);
    return known_[node] = std::move(out);
  }

  Nfa::Fragment build(Nfa& nfa, size_t node) {
    const auto& n = nodes_[node];
    switch (n.kind) {
      case RegexNode::kSymbols: return nfa.one_of(n.symbols);
      case RegexNode::kNot:
      case RegexNode::kBoth: return nfa.embed(deterministic(node));
      case RegexNode::kRepeat: return repeat(nfa, n);
      case RegexNode::kUnion: {
        std::vector<Nfa::Fragment> all;
        for (const size_t child : n.children) all.push_back(build(nfa, child));
        return nfa.either(all);
      }
      case RegexNode::kConcat: break;
    }
    auto out = nfa.empty_word();
    for (const size_t child : n.children) out = nfa.then(out, build(nfa, child));
    return out;
  }

  Nfa::Fragment repeat(Nfa& nfa, const RegexNode& n) {
    auto out = nfa.empty_word();
    for (int64_t i = 0; i < n.least; ++i) out = nfa.then(out, build(nfa, n.children[0]));
    if (n.most < 0) {
      const auto more = nfa.optional(nfa.repeated(build(nfa, n.children[0])));
      return nfa.then(out, more);
    }
    // r{2,5} = r r (r (r r?)?)?: from the inside, so that what is left out is left out at the end.
    auto tail = nfa.empty_word();
    for (int64_t i = n.least; i < n.most; ++i)
      tail = nfa.optional(nfa.then(build(nfa, n.children[0]), tail));
    return nfa.then(out, tail);
  }

  std::vector<RegexNode> nodes_;
  int64_t symbols_;
  Budget budget_;
  std::map<size_t, Automaton> known_;
};

}  // namespace

std::vector<std::string> alphabet_of(const std::string& text) {
  auto out = characters(text, "the alphabet");
  if (out.empty())
    throw Error("the alphabet is empty", "list its characters, such as --alphabet ab");
  if (out.size() > kMostSymbols)
    throw Error(cat("the alphabet has ", out.size(), " symbols, more than ", kMostSymbols));
  std::set<std::string> seen;
  for (const auto& c : out)
    if (!seen.insert(c).second) throw Error(cat("the alphabet has ", shown(c), " twice"));
  return out;
}

Automaton from_regex(const std::string& regex, const std::vector<std::string>& alphabet) {
  auto nodes = parse_regex(regex, alphabet);
  auto out = RegexBuilder(std::move(nodes), static_cast<int64_t>(alphabet.size())).whole();
  out.symbol_names = alphabet;
  return out;
}

}  // namespace lrnn::automata
