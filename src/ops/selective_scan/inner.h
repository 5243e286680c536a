#pragma once
#include <tuple>

#include "ops/inner.h"
#include "ops/selective_scan/selective_scan.h"

// What stands between the op and its back ends; library.cpp has the schemas.
namespace lrnn::ops {

using ScanForwardResult = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor>;
using ScanForwardFunction = ScanForwardResult(const torch::Tensor& u, const torch::Tensor& delta,
                                              const torch::Tensor& A, const torch::Tensor& B,
                                              const MaybeTensor& C, const MaybeTensor& D,
                                              const MaybeTensor& z, const MaybeTensor& delta_bias,
                                              const MaybeTensor& state, bool softplus,
                                              bool negative, const MaybeTensor& cu_seqlens,
                                              bool save);
using ScanBackwardResult =
    std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor,
               torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor>;
using ScanBackwardFunction = ScanBackwardResult(
    const MaybeTensor& dy, const MaybeTensor& d_final_state, const torch::Tensor& u,
    const torch::Tensor& delta, const torch::Tensor& A, const torch::Tensor& B,
    const MaybeTensor& C, const MaybeTensor& D, const MaybeTensor& z, const MaybeTensor& delta_bias,
    const MaybeTensor& state, const torch::Tensor& states, bool softplus, bool negative,
    const MaybeTensor& cu_seqlens);

// One clear sentence, as lrnn::Error, for the first input that does not fit.
void check_selective_scan(const SelectiveScan& in);

}  // namespace lrnn::ops
