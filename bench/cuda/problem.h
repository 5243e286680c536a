#pragma once
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ops/delta_product.h"
#include "ops/torch.h"

// Random problems on the GPU, what they return with all gradients, and how long that takes.
namespace lrnn::bench {

using torch::Tensor;

struct Problem {
  int64_t B, T, N, H, K, V;
  bool gate = false;
  torch::Dtype dtype = torch::kBFloat16;
};

inline Tensor unit(const Tensor& x) { return x / x.norm(2, -1, true); }

inline ops::DeltaProduct make(const Problem& p) {
  const auto on = torch::TensorOptions(torch::kCUDA).dtype(torch::kFloat32);
  ops::DeltaProduct in;
  in.q = unit(torch::randn({p.B, p.T, p.H, p.K}, on)).to(p.dtype);
  in.k = unit(torch::randn({p.B, p.T, p.N, p.H, p.K}, on)).to(p.dtype);
  in.v = torch::randn({p.B, p.T, p.N, p.H, p.V}, on).to(p.dtype);
  in.beta = 2 * torch::sigmoid(torch::randn({p.B, p.T, p.N, p.H}, on));
  if (p.gate) in.log_gate = torch::log_sigmoid(torch::randn({p.B, p.T, p.H}, on) + 4);
  return in;
}

inline std::vector<Tensor*> leaves(ops::DeltaProduct& in) {
  std::vector<Tensor*> all = {&in.q, &in.k, &in.v, &in.beta, &in.log_gate, &in.state};
  std::erase_if(all, [](Tensor* x) { return !x->defined(); });
  return all;
}

// Outputs, then gradients in the order of leaves, for given gradients of o and of the state.
inline std::vector<Tensor> with_gradients(ops::DeltaProduct in, const Tensor& d_o,
                                          const Tensor& d_state) {
  std::vector<Tensor> inputs, results;
  for (Tensor* x : leaves(in)) inputs.push_back(*x = x->detach().requires_grad_());
  const auto out = ops::delta_product(in);
  results = {out.o.detach(), out.state.detach()};
  std::vector<Tensor> outputs = {out.o}, given = {d_o};
  if (d_state.defined()) outputs.push_back(out.state), given.push_back(d_state);
  for (const Tensor& g : torch::autograd::grad(outputs, inputs, given)) results.push_back(g);
  return results;
}

inline double relative_error(const Tensor& got, const Tensor& want) {
  const Tensor g = got.to(torch::kFloat64), w = want.to(torch::kFloat64);
  return (g - w).norm().item<double>() / (w.norm().item<double>() + 1e-30);
}

// Median milliseconds.
template <class F> double time_of(F&& f, int repeats = 30) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  std::vector<float> all;
  for (int i = 0; i < repeats + 5; ++i) {
    cudaEventRecord(begin);
    f();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 5) all.push_back(ms);
  }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
  return all[all.size() / 2];
}

// The same without the host: the work is recorded once and replayed.
template <class F> double graph_time_of(F&& f, int repeats = 30) {
  const auto stream = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard guard(stream);
  for (int i = 0; i < 3; ++i) f();
  at::cuda::CUDAGraph graph;
  graph.capture_begin();
  f();
  graph.capture_end();
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  std::vector<float> all;
  for (int i = 0; i < repeats + 5; ++i) {
    cudaEventRecord(begin, stream);
    graph.replay();
    cudaEventRecord(end, stream);
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 5) all.push_back(ms);
  }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
  return all[all.size() / 2];
}

}  // namespace lrnn::bench
