#pragma once
#include <optional>
#include <tuple>

#include "ops/rows.h"

// The CPU side of short_conv and of its gradient, as registered with the dispatcher.
namespace lrnn::ops {

using OptionalTensor = std::optional<torch::Tensor>;
inline bool defined(const OptionalTensor& x) { return x.has_value() && x->defined(); }

// Throws unless the inputs fit together; the number of sequences.
c10::SymInt check_short_conv(const torch::Tensor& x, const torch::Tensor& weight,
                             const OptionalTensor& bias, const OptionalTensor& state,
                             const OptionalTensor& cu_seqlens);

// y [B,T,D] and the state [S,D,W], which is the transpose of a contiguous [S,W,D]: then the rows of
// a state are rows of x.
std::tuple<torch::Tensor, torch::Tensor> short_conv_cpu(const torch::Tensor& x,
                                                        const torch::Tensor& weight,
                                                        const OptionalTensor& bias,
                                                        const OptionalTensor& state, bool silu,
                                                        const OptionalTensor& cu_seqlens);

// dx, dweight, dbias and dstate; the last two are undefined without a bias or a state.
std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor> short_conv_backward_cpu(
    const torch::Tensor& dy, const OptionalTensor& dnext, const torch::Tensor& x,
    const torch::Tensor& weight, const OptionalTensor& bias, const OptionalTensor& state, bool silu,
    const OptionalTensor& cu_seqlens);

}  // namespace lrnn::ops
