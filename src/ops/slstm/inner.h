#pragma once
#include <tuple>

#include "ops/inner.h"
#include "ops/slstm/slstm.h"

// What stands between the op and its back ends; slstm.cpp has the schemas.
namespace lrnn::ops {

// h, the final state, and (with `save`) the state after every step.
using SlstmForwardResult = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor>;
using SlstmForwardFunction = SlstmForwardResult(const torch::Tensor& wx, const torch::Tensor& R,
                                                const MaybeTensor& bias, const MaybeTensor& state,
                                                const MaybeTensor& cu_seqlens, bool save);
// dwx, dR, dbias, dstate; the last two are empty without a bias or a state.
using SlstmBackwardResult = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor>;
using SlstmBackwardFunction = SlstmBackwardResult(const MaybeTensor& dh,
                                                  const MaybeTensor& d_final_state,
                                                  const torch::Tensor& wx, const torch::Tensor& R,
                                                  const MaybeTensor& bias, const MaybeTensor& state,
                                                  const torch::Tensor& steps,
                                                  const MaybeTensor& cu_seqlens);

}  // namespace lrnn::ops
