#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "automata/automaton.h"

namespace lrnn::automata {

// The characters of a text as symbols; refuses what is not UTF-8, and symbols that come twice.
std::vector<std::string> alphabet_of(const std::string& characters);

// The smallest complete automaton of a regular expression, in canonical form (see `minimal`).
// Symbols are single characters of the alphabet.
//
//   a  .  [abc]  [a-c]  [^ab]   a symbol, any, one of, one of a range, none of these
//   \x                          the character x itself
//   ( )  ()                     brackets; the empty word, as is an empty alternative
//   r* r+ r? r{2} r{2,} r{2,5}  repeats: bind tightest
//   !r                          every word that r does not match
//   r s,  r & s,  r | s         one after the other, both, either: from tight to loose
//
// Errors name the column, counted in characters from 1.
Automaton from_regex(const std::string& regex, const std::vector<std::string>& alphabet);

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
