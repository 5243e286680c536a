#include "kernels/cuda/mlstm/mlstm.h"
#include "kernels/cuda/tile/functions.cuh"
#include "kernels/cuda/tile/sequences.cuh"

// One thread per sequence and head: a few numbers per token, whose loads do not wait for the chain.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 64;

template <class R> struct Chain {
  int64_t s, h, at, step;  // at: of the first token in [B,T,H]
  Span span;
  bool valid;
  __device__ __forceinline__ explicit Chain(const MlstmGates& p) {
    const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
    valid = i < p.S * p.H;
    s = valid ? i / p.H : 0, h = i - s * p.H;
    span = span_of(p, s), step = p.H;
    at = (span.b * p.T + span.t0) * p.H + h;
  }
  __device__ __forceinline__ R first(const MlstmGates& p) const {
    return p.first ? static_cast<const R*>(p.first)[s * p.H + h] : R(-INFINITY);
  }
};

template <class R>
__global__ void __launch_bounds__(kThreads)
    gates(const MlstmGates p, R* to_m, R* log_forget, R* log_input, R* final_m) {
  const Chain<R> chain(p);
  if (!chain.valid) return;
  R m = chain.first(p);
#pragma unroll 8
  for (int64_t t = 0; t < chain.span.length; ++t) {
    const int64_t at = chain.at + t * chain.step;
    const R i = static_cast<const R*>(p.i)[at], f = static_cast<const R*>(p.f)[at];
    const R a = log_sigmoid(f) + m;
    m = i >= a ? i : a;
    to_m[at] = m, log_forget[at] = a - m, log_input[at] = i - m;
  }
  final_m[chain.s * p.H + chain.h] = m;
}

template <class R>
__global__ void __launch_bounds__(kThreads) gradients(const MlstmGateGradients p) {
  const auto read = [](const void* x) { return static_cast<const R*>(x); };
  const R *const all_m = read(p.m), *const dm_direct = read(p.dm),
                 *const dlog_forget = read(p.dlog_forget), *const dlog_input = read(p.dlog_input),
                 *const dfinal_m = read(p.dfinal_m);
  R *const di = static_cast<R*>(p.di), *const df = static_cast<R*>(p.df),
           *const dfirst = static_cast<R*>(p.dfirst);
  const Chain<R> chain(p);
  if (!chain.valid) return;
  R dm = dfinal_m ? dfinal_m[chain.s * p.H + chain.h] : R(0);
#pragma unroll 4
  for (int64_t t = chain.span.length - 1; t >= 0; --t) {
    const int64_t at = chain.at + t * chain.step;
    const R i = static_cast<const R*>(p.i)[at], f = static_cast<const R*>(p.f)[at];
    const R before = t > 0 ? all_m[at - chain.step] : chain.first(p);
    const bool took_input = i >= log_sigmoid(f) + before;
    const R from_input = dlog_input[at], from_forget = dlog_forget[at];
    dm += dm_direct[at] - from_input - from_forget;
    const R da = from_forget + (took_input ? R(0) : dm);
    di[at] = from_input + (took_input ? dm : R(0));
    df[at] = da * sigmoid(-f);
    dm = da;
  }
  if (dfirst) dfirst[chain.s * p.H + chain.h] = dm;
}

unsigned blocks_of(const MlstmGates& p) { return unsigned((p.S * p.H + kThreads - 1) / kThreads); }

}  // namespace

void mlstm_gates(const MlstmGates& p, void* m, void* log_forget, void* log_input, void* final_m,
                 void* stream) {
  if (p.S * p.H == 0) return;
  const auto launch = [&](auto zero) {
    using R = decltype(zero);
    gates<R><<<blocks_of(p), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
        p, static_cast<R*>(m), static_cast<R*>(log_forget), static_cast<R*>(log_input),
        static_cast<R*>(final_m));
  };
  p.type == Type::kFloat64 ? launch(double()) : launch(float());
  check_launch("mlstm");
}

void mlstm_gate_gradients(const MlstmGateGradients& p, void* stream) {
  if (p.S * p.H == 0) return;
  const auto launch = [&](auto zero) {
    gradients<decltype(zero)><<<blocks_of(p), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(p);
  };
  p.type == Type::kFloat64 ? launch(double()) : launch(float());
  check_launch("mlstm");
}

}  // namespace lrnn::kernels::cuda
