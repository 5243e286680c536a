#pragma once
#include "automata/read/source.h"
#include "compile/compile.h"
#include "compile/long_run.h"

namespace lrnn::compile {

inline automata::Subject example(const std::string& name) {
  automata::Source source;
  source.example = name;
  return automata::load(source);
}

inline automata::Subject group(const std::string& name, const std::string& letters = "all") {
  automata::Source source;
  source.group = name, source.letters = letters;
  return automata::load(source);
}

inline Tokens tokens_of(const Compiled& c) {
  Tokens out;
  const auto& a = c.subject.automaton;
  for (int64_t x = 0; x < a.symbols; ++x) out.symbol.push_back(x);
  for (int64_t s = 0; s < a.states; ++s)
    out.answer.push_back(a.symbols + c.labels.of_state[size_t(s)]);
  for (int64_t b = 0; b < c.weights.bos; ++b)
    out.before.push_back(c.weights.vocabulary - c.weights.bos + b);
  return out;
}

inline LongRun run(const Compiled& c, int64_t tokens) {
  const auto model = model_of(c.weights);
  return long_run(*model, c.subject.automaton, tokens_of(c), {tokens, 1});
}

}  // namespace lrnn::compile
