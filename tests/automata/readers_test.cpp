#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/automata/fuzz_readers.h"

namespace lrnn::automata {
namespace {

// Small changes to texts that are right reach further into a reader than noise does.
std::string mutated(const std::vector<std::string>& seeds, const std::string& pieces,
                    Random& random) {
  std::string text = seeds[random.below(seeds.size())];
  for (uint64_t n = 1 + random.below(6); n > 0; --n) {
    const size_t at = random.below(text.size() + 1);
    const size_t length = std::min<size_t>(random.below(8), text.size() - at);
    switch (random.below(5)) {
      case 0: text.erase(at, length); break;
      case 1: text.insert(at, 1, pieces[random.below(pieces.size())]); break;
      case 2: text.insert(at, text.substr(random.below(text.size() + 1), 12)); break;
      case 3: text.insert(at, 1, static_cast<char>(random.below(256))); break;
      default: {
        const auto& other = seeds[random.below(seeds.size())];
        text = text.substr(0, at) + other.substr(random.below(other.size() + 1));
      }
    }
  }
  return text;
}

TEST(Readers, RegexSurvivesAnything) {
  const std::vector<std::string> seeds = {"(ab|ba)*[^0]{2,3}", "!(a*b)&.*01", "a{2,}(b|)?",
                                          "\\(\\\\[a-b0]+", "!!((a|b){3}&!b*)01"};
  for (uint64_t i = 0; i < 4000; ++i) {
    Random random(51, 0, i);
    fuzz_regex(mutated(seeds, "ab01()[]{}|&!*+?.,^-\\29", random));
  }
}

TEST(Readers, JsonSurvivesAnything) {
  const std::vector<std::string> seeds = {
      R"({"alphabet":["a","b"],"states":["s","t"],"start":"s","accept":["s"],"next":{"s":{"a":"t","b":"s"},"t":{"a":"s","b":"t"}}})",
      R"({"alphabet":["x"],"states":["0"],"start":"0","next":{"0":{"x":"0"}}})"};
  for (uint64_t i = 0; i < 4000; ++i) {
    Random random(52, 0, i);
    fuzz_json(mutated(seeds, "{}[]\":,ab019\\u", random));
  }
}

TEST(Readers, GraphSurvivesAnything) {
  const std::vector<std::string> seeds = {
      "digraph g { s [shape=point]; s -> a; a -> b [label=\"x,y\"]; b -> a [label=x]; b -> b "
      "[label=y] }",
      "digraph { node [shape=doublecircle]; \"q 0\"; /* c */ rankdir=LR // d\n \"\" [shape=none] "
      "\"\" -> \"q 0\" -> \"q 0\" [label=a] }"};
  for (uint64_t i = 0; i < 4000; ++i) {
    Random random(53, 0, i);
    fuzz_graph(mutated(seeds, "{}[]\"->;=,/*#\\ x", random));
  }
}

}  // namespace
}  // namespace lrnn::automata
