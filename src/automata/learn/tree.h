#pragma once
#include <map>

#include "automata/learn/moore.h"

namespace lrnn::automata {

// Learns with a discrimination tree (Kearns and Vazirani 1994). Its leaves are the states known so
// far, each with a word that leads there; its inner nodes hold a suffix, and a state lies below
// the answer to its word with that suffix behind it. So a word is led to a state by one question
// per level, and all words that are on their way are asked about together.
class DiscriminationTree {
 public:
  DiscriminationTree(Oracle& oracle, int64_t most_states);

  // Leads all transitions to states, which may bring new ones. What the oracle throws leaves a tree
  // that can be read and closed later.
  void close();

  // A word that `hypothesis()` answers differently shows a state that is two (Rivest and Schapire
  // 1993). False when the oracle, asked again, says what the hypothesis says.
  bool refine(const Word& word);

  // The automaton so far. A transition that has not found its state leads to one that it could be.
  Moore hypothesis() const;

  int64_t states() const { return int64_t(access_.size()); }
  // Whether a state was left out because there were too many.
  bool full() const { return full_; }
  const Word& access(int64_t state) const { return access_[at(state)]; }  // leads to it
  const std::vector<Word>& suffixes() const { return suffixes_; }         // the empty one first

 private:
  struct Node {
    int64_t state = -1;                  // of a leaf
    size_t suffix = 0;                   // of an inner node: which one
    std::map<int64_t, size_t> children;  // by answer
    int64_t answer = kUnasked;           // of every state below, but for the root
  };
  // The node below `node` for the answer; where there is none, a state is made of access + letter.
  size_t below(size_t node, int64_t answer, int64_t state, int64_t letter);
  size_t add_state(Word access, int64_t answer);  // its leaf
  size_t some_leaf(size_t node) const;
  void split(int64_t state, const Word& suffix, int64_t answer, Word access, int64_t other);
  int64_t ask(const Word& before, Word after);

  Oracle& oracle_;
  int64_t symbols_, most_;
  bool full_ = false;
  std::vector<Node> nodes_;  // the root is 0
  std::vector<Word> access_, suffixes_;
  std::vector<size_t> leaf_;   // of each state
  std::vector<size_t> place_;  // of each transition, state by state: the node it has come to
};

}  // namespace lrnn::automata
