#pragma once
#include "automata/learn/sample.h"

namespace lrnn::automata {

struct LearnOptions {
  int64_t states = 500, words = 10000000;  // at most
  double seconds = 600;
  int64_t longest = 400;  // letters of the longest words that are tried
  uint64_t seed = 1;
};

// Why learning ended: no difference was found; or a budget was used up; or more states no longer
// brought the answers nearer to the oracle's.
enum class Ended { kAgreed, kStates, kWords, kSeconds, kNoBetter };

struct Learnt {
  Moore machine;  // minimal; the best one found when it did not agree
  Ended ended = Ended::kAgreed;
  int64_t asked = 0, longest = 0;      // words asked about; letters of the longest of the sample
  std::vector<Agreement> agreement;    // on words that had no part in choosing the machine
  std::optional<Answered> difference;  // the shortest word known on which they part
  double seconds = 0;
};

// The automaton whose answers are the oracle's. Words of every length come from `draw`; it is
// asked for words of more and more letters, whose answers the automaton has to give, too, and so
// have words through all of its own states (W-method). When it does, fresh words decide.
Learnt learn(Oracle& oracle, const Draw& draw, const LearnOptions& options);

}  // namespace lrnn::automata
