#pragma once
#include <tuple>

#include "ops/inner.h"

// What gated linear attention and RWKV-7 have in common, and what stands between them and their
// back ends; kernels/diagonal.h has the recurrence, library.cpp the schemas of the inner ops.
namespace lrnn::ops {

struct Diagonal {
  torch::Tensor q, k, v, log_decay;  // q undefined: no outputs are wanted, only the state
  torch::Tensor kk, rate;            // both undefined: no rank-one term
  torch::Tensor state;
  double scale = 1;
  bool negative = false;
  torch::Tensor cu_seqlens;
};

struct DiagonalNames {
  const char *op, *q, *log_decay;
};

// One clear sentence, as lrnn::Error, for the first input that does not fit.
void check_diagonal(const DiagonalNames& names, const Diagonal& in);

// Checked inputs to (o, state); o is undefined without q.
std::pair<torch::Tensor, torch::Tensor> diagonal(const char* op, const Diagonal& in);
// The same below autograd, where results that nobody asked for are empty.
std::pair<torch::Tensor, torch::Tensor> diagonal_below_autograd(const char* op, const Diagonal& in);

using DiagonalForwardResult = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor>;
using DiagonalForwardFunction =
    DiagonalForwardResult(const MaybeTensor& q, const torch::Tensor& k, const torch::Tensor& v,
                          const torch::Tensor& log_decay, const MaybeTensor& kk,
                          const MaybeTensor& rate, const MaybeTensor& state, double scale,
                          bool negative, const MaybeTensor& cu_seqlens, bool save);
using DiagonalBackwardResult =
    std::tuple<torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor, torch::Tensor,
               torch::Tensor, torch::Tensor>;
using DiagonalBackwardFunction = DiagonalBackwardResult(
    const MaybeTensor& d_o, const MaybeTensor& d_final_state, const MaybeTensor& q,
    const torch::Tensor& k, const torch::Tensor& v, const torch::Tensor& log_decay,
    const MaybeTensor& kk, const MaybeTensor& rate, const MaybeTensor& state,
    const torch::Tensor& states, double scale, bool negative, const MaybeTensor& cu_seqlens);

}  // namespace lrnn::ops
