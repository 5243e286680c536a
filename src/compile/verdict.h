#pragma once
#include <optional>
#include <string>
#include <vector>

#include "automata/cascade/classify.h"
#include "compile/plan/plan.h"

namespace lrnn::compile {

// Whether a family of RNNs can follow the automaton on words of every length.
struct Verdict {
  enum Family { kDiagonal, kDiagonalComplex, kDeltaProduct, kGatedDeltaProduct, kTitans, kTtt };
  Family family = kDiagonal;
  // Range [-1, 1] rather than [0, 1]; of kTitans theta reaches to 2 rather than to 1, kTtt has
  // none.
  bool negative = false;
  std::optional<int64_t> householders;  // none where the family has none, or for any number
  std::optional<int64_t> layers;        // none: any number
  enum Answer { kYes, kNo, kUnknown } answer = kUnknown;
  // kCompiled: one of the plans, exact. kExistence: a theorem grants it. kTheorem: a theorem
  // forbids it, or says nothing.
  enum How { kCompiled, kExistence, kTheorem } how = kTheorem;
  std::string theorem, reason;
};
std::string name_of(Verdict::Family family);  // "diagonal", "diagonal_complex", ...
std::string name_of(Verdict::Answer answer);
std::string name_of(Verdict::How how);

// What the theorems ask about, beyond the class.
struct Evidence {
  std::string turning_word;  // its powers never settle; empty when there is none
  int64_t turning_period = 1;
  int64_t longest_two_power = 1;         // the largest period 2^j that we know of
  int64_t odd_prime = 0;                 // an odd prime that divides a period
  int64_t halvings = 0;                  // of 2-groups: layers of elementary abelian quotients
  bool five_cycle_in_s5 = false;         // the group is S5 and a letter has order 5
  bool one_letter_turns_thrice = false;  // a letter whose period does not divide 2
  std::string restless_letter;           // that one
};
Evidence evidence(const Automaton& a, const Class& c, const Cascade& cascade);

// Every family at every size worth asking about. A `no` comes from a theorem only, `compiled` from
// one of the plans only.
std::vector<Verdict> verdicts(const Class& c, const Evidence& e, const std::vector<Plan>& plans);

}  // namespace lrnn::compile
