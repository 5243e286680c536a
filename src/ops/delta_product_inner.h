#pragma once
#include <torch/types.h>

#include <optional>
#include <tuple>

#include "ops/delta_product.h"

// What stands between the op and its back ends; library.cpp has the schemas.
namespace lrnn::ops {

using MaybeTensor = std::optional<torch::Tensor>;
using ForwardResult = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor>;
using BackwardResult = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor,
                                  torch::Tensor, torch::Tensor>;
using ForwardFunction = ForwardResult(const MaybeTensor& q, const torch::Tensor& k,
                                      const torch::Tensor& v, const torch::Tensor& beta,
                                      const MaybeTensor& log_gate, const MaybeTensor& state,
                                      double scale, const MaybeTensor& cu_seqlens, bool save);
using BackwardFunction = BackwardResult(const MaybeTensor& d_o, const MaybeTensor& d_final_state,
                                        const MaybeTensor& q, const torch::Tensor& k,
                                        const torch::Tensor& beta, const MaybeTensor& log_gate,
                                        const MaybeTensor& state, const torch::Tensor& error,
                                        const torch::Tensor& states, double scale,
                                        const MaybeTensor& cu_seqlens);

// One clear sentence, as lrnn::Error, for the first input that does not fit.
void check_delta_product(const DeltaProduct& in);

inline MaybeTensor maybe(const torch::Tensor& x) {
  return x.defined() ? MaybeTensor(x) : std::nullopt;
}
inline torch::Tensor or_undefined(const MaybeTensor& x) { return x.value_or(torch::Tensor()); }
inline torch::Dtype wide_type(const torch::Tensor& k) {
  return k.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
}

}  // namespace lrnn::ops
