#pragma once
#include "ops/field.h"

// Norms of rows, over the last dimension; computed in float32 for bfloat16.
namespace lrnn::ops {

// x / sqrt(mean(x^2) + eps) * weight
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double eps);
torch::Tensor rms_norm_definition(const torch::Tensor& x, const torch::Tensor& weight, double eps);

// x / sqrt(sum(x^2) + eps)
torch::Tensor l2_norm(const torch::Tensor& x, double eps);
torch::Tensor l2_norm_definition(const torch::Tensor& x, double eps);

struct NormResult {
  torch::Tensor y;

  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.y, result("y", "*D"));
  }
};

struct RmsNorm {
  torch::Tensor x, weight;
  double eps = kToBeGiven;

  static constexpr const char* kName = "rms_norm";
  static constexpr bool kCheap = true;  // to make again
  static constexpr bool kMean = true;
  using Result = NormResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.x, main_input("x", "*D"));
    visit(in.weight, needed("weight", "D", Kind::kIoOrWide));
    visit(in.eps, "eps");
  }
};

struct L2Norm {
  torch::Tensor x;
  double eps = kToBeGiven;

  static constexpr const char* kName = "l2_norm";
  static constexpr bool kCheap = true;
  static constexpr bool kMean = false;
  using Result = NormResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.x, main_input("x", "*D"));
    visit(in.eps, "eps");
  }
};

inline torch::Tensor weight_of(const RmsNorm& in) { return in.weight; }
inline torch::Tensor weight_of(const L2Norm&) { return {}; }

// A residual stream and the norm before the next layer:  s = x + y,  h = rms_norm(s, weight, eps).
// Without y (undefined) s is x. With `for_products` h is what a matrix product would make of it
// under autocast. On a GPU one pass, and its gradient another.
std::pair<torch::Tensor, torch::Tensor> add_norm(const torch::Tensor& x, const torch::Tensor& y,
                                                 const torch::Tensor& weight, double eps,
                                                 bool for_products);
// The definition, in the type of x.
std::pair<torch::Tensor, torch::Tensor> add_norm_definition(const torch::Tensor& x,
                                                            const torch::Tensor& y,
                                                            const torch::Tensor& weight,
                                                            double eps);

}  // namespace lrnn::ops
