#pragma once
#include <optional>
#include <string>
#include <vector>

#include "automata/classify.h"
#include "automata/plan.h"

namespace lrnn::automata {

// Whether a family of linear RNNs can follow the automaton on words of every length.
struct Verdict {
  std::string family;     // diagonal, diagonal_complex, delta_product, gated_delta_product
  bool negative = false;  // range [-1, 1] rather than [0, 1]
  std::optional<int64_t> householders;  // none where the family has no such number, or for any
  std::optional<int64_t> layers;        // none: any number
  enum Answer { kYes, kNo, kUnknown } answer = kUnknown;
  enum How { kCompiled, kExistence, kTheorem } how = kTheorem;
  std::string theorem, reason;
};
std::string name_of(Verdict::Answer answer);
std::string name_of(Verdict::How how);

// A `no` comes from a theorem only, `compiled` from one of the plans only.
std::vector<Verdict> verdicts(const Automaton& a, const Class& c, const std::vector<Plan>& plans);

}  // namespace lrnn::automata
