#pragma once
#include <tuple>

#include "ops/inner.h"
#include "ops/short_conv/short_conv.h"

// The inner ops of unit_conv, in steps of other ops: what back ends without a kernel for it do.
namespace lrnn::ops {

// The convolution in it.
ShortConv conv_of(const torch::Tensor& x, const torch::Tensor& weight, const MaybeTensor& state);

// y in pieces [B,T,..] and the state [B,D,W].
std::tuple<std::vector<torch::Tensor>, torch::Tensor> unit_conv_in_steps(
    const torch::Tensor& x, const torch::Tensor& weight, const MaybeTensor& state,
    at::IntArrayRef sizes, int64_t units, int64_t group, double eps);
// dx and dweight; dy in pieces [B,T,..].
std::tuple<torch::Tensor, torch::Tensor> unit_conv_backward_in_steps(
    at::TensorList dy, const MaybeTensor& dnext, const torch::Tensor& x,
    const torch::Tensor& weight, const MaybeTensor& state, int64_t units, int64_t group,
    double eps);

// Throws unless the first `units` channels of x are whole groups, and all of them the pieces.
void check_units(const torch::Tensor& x, at::IntArrayRef sizes, int64_t units, int64_t group);
// Throws unless the pieces are the gradient of a y like x.
void check_pieces(at::TensorList dy, const torch::Tensor& x);

}  // namespace lrnn::ops
