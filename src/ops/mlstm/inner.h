#pragma once
#include <tuple>

#include "ops/inner.h"
#include "ops/mlstm/mlstm.h"

// What stands between the op and its back ends; mlstm.cpp has the schemas.
namespace lrnn::ops {

// h, the final C, n and m, and (with `save`) the states at later chunks.
using MlstmForwardResult =
    std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor>;
using MlstmForwardFunction = MlstmForwardResult(const torch::Tensor& q, const torch::Tensor& k,
                                                const torch::Tensor& v, const torch::Tensor& i,
                                                const torch::Tensor& f, const MaybeTensor& C,
                                                const MaybeTensor& n, const MaybeTensor& m,
                                                double scale, double eps,
                                                const MaybeTensor& cu_seqlens, bool save);
// dq, dk, dv, di, df, dC, dn, dm; the last three are empty without a state.
using MlstmBackwardResult = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor,
                                       torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor>;
using MlstmBackwardFunction = MlstmBackwardResult(
    const MaybeTensor& dh, const MaybeTensor& dfinal_C, const MaybeTensor& dfinal_n,
    const MaybeTensor& dfinal_m, const torch::Tensor& final_C, const torch::Tensor& final_n,
    const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v, const torch::Tensor& i,
    const torch::Tensor& f, const MaybeTensor& C, const MaybeTensor& n, const MaybeTensor& m,
    const torch::Tensor& states, double scale, double eps, const MaybeTensor& cu_seqlens);

}  // namespace lrnn::ops
