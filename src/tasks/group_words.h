#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "automata/algebra/group.h"

namespace lrnn::tasks {

// How words over a group are written down. The name says it, as in the published files:
//
//   S5                                 every element, one token each
//   S5_only_swaps                      elements that move at most two points
//   S5_limit_to_3                      elements that move at most three points
//   S5_only_swaps_hard                 four drawn swaps become their product and three identities;
//                                      answers come three tokens late
//   S5_4_tokens                        each element stands four times, counts once, and its answer
//                                      comes three tokens late
//   S5_4_tokens_s_token                … once, then three times the special token |G|, which is
//                                      also the answer there
//   S5_4_tokens_s_token_only_input     … but answers are always elements
//
// A restriction and an encoding may be combined, such as S5_limit_to_3_2_tokens.
struct GroupWords {
  explicit GroupWords(const std::string& name);

  std::string name;
  automata::Group group;
  std::vector<int64_t> letters;  // the elements that are drawn, ascending
  int64_t tokens = 1;            // per element drawn (hard: per block)
  bool special = false, only_input = false, hard = false;

  int64_t filler() const { return group.order(); }
  int64_t symbols() const { return group.order() + special; }  // token ids before PAD, BOS, …

  int64_t draws(int64_t length) const;
  // Places among `letters` -> `length` tokens.
  std::vector<int64_t> spell(const std::vector<int64_t>& drawn, int64_t length) const;
  // The answer at every token: what stands in the file's column `target`.
  std::vector<int64_t> answers(const std::vector<int64_t>& tokens) const;
};

}  // namespace lrnn::tasks
