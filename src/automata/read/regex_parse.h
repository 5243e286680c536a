#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lrnn::automata {

// A regular expression as a tree. Children come before their parents; the last node is the whole.
struct RegexNode {
  enum Kind { kSymbols, kConcat, kUnion, kBoth, kNot, kRepeat };
  Kind kind;
  std::vector<size_t> children = {};  // kConcat without any: the empty word
  std::vector<int32_t> symbols = {};  // of kSymbols; none: nothing matches
  int64_t least = 0, most = 0;        // of kRepeat; most < 0: no end
};

std::vector<RegexNode> parse_regex(const std::string& regex,
                                   const std::vector<std::string>& alphabet);

}  // namespace lrnn::automata
