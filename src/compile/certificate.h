#pragma once
#include <string>
#include <vector>

#include "compile/compile.h"
#include "compile/margin.h"

namespace lrnn::compile {

// A proof for words of every length, part by part, with the weights that the model has and the
// kernels that it runs on.
struct Certificate {
  struct Part {
    std::string name;
    int64_t cases = 0;
    std::string wrong;  // empty: nothing
  };
  std::vector<Part> parts;
  bool exact = false;  // every head is: then the parts are a proof for all lengths
  Margin margin;       // how far the weights may move; of weights that are as they were compiled
  bool holds() const;
  std::string first_wrong() const;
};
Certificate certify(const Compiled& compiled, const model::Model& model);

// The parts.
class Parts;
Certificate::Part certify_cascades(const Compiled& c);
Certificate::Part certify_groups(const Compiled& c, const Parts& parts);
Certificate::Part certify_flip_flops(const Compiled& c, const Parts& parts);
// The least and the most that a write of the flip-flop behind the features `holds` replaces.
std::pair<double, double> write_strengths(const Compiled& c, const Parts& parts, int64_t layer,
                                          const std::vector<int64_t>& holds);
Certificate::Part certify_tables(const Compiled& c, const Parts& parts);
Certificate::Part certify_answers(const Compiled& c, const Parts& parts);

}  // namespace lrnn::compile
