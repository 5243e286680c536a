#pragma once
#include "ops/sizes.h"

// The head of a language model and its loss as one op, which never holds all logits. With
// x = h weight^T, over the rows r that have a target (>= 0):
//
//   loss  = share sum_r (log sum_v exp(x_rv) - x_r,target)
//   right = how many rows have their largest logit, the first of several, at the target
//
// The logits of kRowsAtOnce rows are made, turned into their gradient where they lie, and
// multiplied into dh and dweight, all in forward: backward has nothing to do but scale. Sums are
// taken in one order. dweight is added up in float32, for bfloat16 too; a weight of another type
// than h is read in that of h and has a gradient of its own type.
namespace lrnn::ops {

struct LinearCrossEntropyResult {
  torch::Tensor loss, right;  // one number each; right has no derivative

  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.loss, result("loss", "", Kind::kWide));
    visit(out.right, result("right", "", Kind::kWide));
  }
};

struct LinearCrossEntropy {
  torch::Tensor h, weight;  // [R,D] and [V,D]
  torch::Tensor target;     // int64 or int32 [R]; below 0: none
  double share = 1;         // 1 over the number of targets: the mean

  static constexpr const char* kName = "linear_cross_entropy";
  static constexpr int64_t kRowsAtOnce = 4096;
  using Result = LinearCrossEntropyResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.h, main_input("h", "RD"));
    visit(in.weight, needed("weight", "VD", Kind::kCast));
    visit(in.target, needed("target", "R", Kind::kIndex));
    visit(in.share, "share");
  }
};

LinearCrossEntropyResult linear_cross_entropy(const LinearCrossEntropy& in);
LinearCrossEntropyResult linear_cross_entropy_definition(const LinearCrossEntropy& in);

// What an evaluation asks of the same rows: the loss of each [R], float32 or float64, and whether
// its largest logit is at the target, bool [R]; 0 and false without a target. No derivatives.
struct RowScores {
  torch::Tensor loss, right;
};
RowScores score_rows(const torch::Tensor& h, const torch::Tensor& weight,
                     const torch::Tensor& target);

}  // namespace lrnn::ops
