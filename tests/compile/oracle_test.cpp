#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "automata/read/text_format.h"
#include "tests/compile/suite.h"

// What automata-lib says, in a file that tests/scripts/oracle.py writes: expressions with their
// minimal automata, automata with the states that words lead to. Here, in one process, because
// starting one per case takes longer than the cases.
namespace lrnn::compile {
namespace {

using automata::Automaton;
using nlohmann::json;

constexpr int64_t kCompiledStates = 5;  // random_test.cpp has the larger ones

automata::Subject subject(const json& c) {
  if (c.contains("regex")) {
    automata::Source source;
    source.has_regex = true;
    source.regex = c["regex"], source.alphabet = c["alphabet"];
    return automata::load(source);
  }
  const auto a = automata::from_json(c["automaton"].dump(), "the case");
  return {"a drawn automaton", automata::reachable(a), false};
}

// Both read the same symbols side by side; `same` is asked about every pair of states they reach.
template <class Same> bool walk(const Automaton& a, const Automaton& b, Same same) {
  std::map<std::string, int64_t> symbol;
  for (int64_t x = 0; x < b.symbols; ++x) symbol[b.symbol_name(x)] = x;
  std::map<std::pair<int64_t, int64_t>, bool> seen = {{{a.start, b.start}, true}};
  for (std::deque<std::pair<int64_t, int64_t>> todo = {{a.start, b.start}}; !todo.empty();) {
    const auto [s, t] = todo.front();
    todo.pop_front();
    if (!same(s, t)) return false;
    for (int64_t x = 0; x < a.symbols; ++x) {
      const std::pair<int64_t, int64_t> to = {a.step(s, x), b.step(t, symbol.at(a.symbol_name(x)))};
      if (seen.emplace(to, true).second) todo.push_back(to);
    }
  }
  return a.symbols == b.symbols;
}

void expect_same_automaton(const Automaton& ours, const json& c) {
  ASSERT_EQ(ours.states, c["states"].get<int64_t>());
  const bool named = !c.contains("regex");
  const auto theirs = automata::from_json(c[named ? "automaton" : "minimal"].dump(), "the oracle");
  EXPECT_TRUE(walk(ours, theirs, [&](int64_t s, int64_t t) {
    if (named && ours.state_name(s) != theirs.state_name(t)) return false;
    return ours.accept.at(size_t(s)) == theirs.accept.at(size_t(t));
  }));
}

std::string answer(const Compiled& c, model::Model& model, const std::string& word) {
  const auto& a = c.subject.automaton;
  std::vector<int64_t> tokens = tokens_of(c).before;
  for (const char letter : word)
    for (int64_t x = 0; x < a.symbols; ++x)
      if (a.symbol_name(x) == std::string(1, letter)) tokens.push_back(x);
  model::State state;
  const auto best = model.forward(torch::tensor(tokens).unsqueeze(0), state).argmax(-1)[0][-1];
  const int64_t label = best.item<int64_t>() - a.symbols;
  return label < 0 ? "no answer" : c.labels.names.at(size_t(label));
}

TEST(Oracle, AgreesWithAutomataLib) {
  const char* path = std::getenv("LRNN_ORACLE");
  if (!path) GTEST_SKIP() << "tests/scripts/oracle.py runs this";
  torch::InferenceMode no_gradients;
  const auto cases = json::parse(std::ifstream(path));
  for (const auto& c : cases) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const auto s = subject(c);
    expect_same_automaton(s.automaton, c);
    if (testing::Test::HasFailure()) return;
    if (!c.contains("regex") && s.automaton.states > kCompiledStates) continue;
    const auto compiled = compile(s, {});
    const auto model = model_of(compiled->weights);
    for (const auto& [word, want] : c["words"].items())
      EXPECT_EQ(answer(*compiled, *model, word), want.get<std::string>()) << "'" << word << "'";
  }
  EXPECT_FALSE(cases.empty());
}

}  // namespace
}  // namespace lrnn::compile
