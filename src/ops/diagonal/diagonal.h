#pragma once
#include <tuple>

#include "kernels/diagonal.h"
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

inline const char* diagonal_name(bool rank_one) {
  return rank_one ? "rwkv7" : "gated_linear_attention";
}

// Inputs in the form that the kernels of any device read, kept alive together; cu_seqlens as
// checked_offsets() gives them.
struct DiagonalTensors {
  torch::Tensor q, k, v, log_decay, kk, rate, state, cu_seqlens;

  void fill(kernels::DiagonalInputs& p, double scale, bool negative) {
    log_decay = log_decay.to(wide_type(k));
    for (torch::Tensor* x : {&q, &k, &v, &log_decay, &kk, &rate})
      if (x->defined()) *x = with_rows(*x);
    p.type = kernel_type(k);
    p.B = k.size(0), p.T = k.size(1), p.H = k.size(2), p.K = k.size(3), p.V = v.size(3), p.S = p.B;
    p.scale = scale, p.negative = negative;
    if (q.defined()) p.q = kernel_rows(q);
    p.k = kernel_rows(k), p.v = kernel_rows(v), p.log_decay = kernel_rows(log_decay);
    if (kk.defined()) p.kk = kernel_rows(kk), p.rate = kernel_rows(rate);
    if (state.defined()) {
      state = state.contiguous();
      p.state = state.const_data_ptr();
    }
    if (!cu_seqlens.defined()) return;
    p.S = cu_seqlens.size(0) - 1, p.cu_seqlens = cu_seqlens.const_data_ptr<int64_t>();
  }
};

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
