#pragma once
#include <tuple>

#include "ops/delta_product/delta_product.h"
#include "ops/inner.h"

// What stands between the op and its back ends; library.cpp has the schemas.
namespace lrnn::ops {

using ForwardResult = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor>;
using BackwardResult = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor,
                                  torch::Tensor, torch::Tensor>;
using ForwardFunction = ForwardResult(const MaybeTensor& q, const torch::Tensor& k,
                                      const torch::Tensor& v, const torch::Tensor& beta,
                                      const MaybeTensor& log_gate, const MaybeTensor& state,
                                      double scale, const MaybeTensor& cu_seqlens,
                                      c10::string_view precision, bool save);
using BackwardFunction = BackwardResult(const MaybeTensor& d_o, const MaybeTensor& d_final_state,
                                        const MaybeTensor& q, const torch::Tensor& k,
                                        const torch::Tensor& beta, const MaybeTensor& log_gate,
                                        const MaybeTensor& state, const torch::Tensor& error,
                                        const torch::Tensor& states, double scale,
                                        const MaybeTensor& cu_seqlens, c10::string_view precision);

// One clear sentence, as lrnn::Error, for the first input that does not fit.
void check_delta_product(const DeltaProduct& in);

}  // namespace lrnn::ops
