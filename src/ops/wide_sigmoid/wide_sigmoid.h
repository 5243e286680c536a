#pragma once
#include "ops/field.h"

namespace lrnn::ops {

// scale * sigmoid(x) as torch computes it, the sigmoid rounded to the type of x, but given in
// float32 for bfloat16 (the recurrences take their step sizes so); one node of the graph.
//
// The rounding matters: from a logit of 6.25 on the sigmoid is 1 in bfloat16, and a step size of
// exactly 2 is a reflection, which forgets nothing. In float32 it would only come close.
torch::Tensor wide_sigmoid(const torch::Tensor& x, double scale);
torch::Tensor wide_sigmoid_definition(const torch::Tensor& x, double scale);

struct WideSigmoidResult {
  torch::Tensor y;

  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.y, result("y", "*", Kind::kWide));
  }
};

struct WideSigmoid {
  torch::Tensor x;
  double scale = kToBeGiven;

  static constexpr const char* kName = "wide_sigmoid";
  using Result = WideSigmoidResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.x, main_input("x", "*"));
    visit(in.scale, "scale");
  }
};

}  // namespace lrnn::ops
