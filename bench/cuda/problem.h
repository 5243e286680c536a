#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "bench/cuda/timing.h"
#include "ops/delta_product/case.h"

// Random problems of the delta product on the GPU, what they return with all gradients, and what
// that must cost.
namespace lrnn::bench {

using torch::Tensor;

using Case = ops::DeltaProductCase;

inline ops::DeltaProduct make(const Case& c) {
  return ops::make_delta_product(c, {c.dtype, torch::kCUDA});
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

inline double gates_of(const Case& p) {  // of a token and head
  return p.channels ? double(p.K) : p.gate ? 1 : 0;
}

// Inputs and outputs once, the products of the chunk form with its 64 updates a chunk; for backward
// its own inputs and outputs, and twice the products.
inline Cost forward_cost(const Case& p) {
  const double heads = double(p.B * p.T * p.H), size = p.dtype == torch::kBFloat16 ? 2 : 4;
  const double K = double(p.K), V = double(p.V), N = double(p.N), C = 64;
  const double keys = K * double(p.G()) / double(p.H);  // of a head's share in memory
  return {heads * (size * (1 + N) * (keys + V) + 4 * (N + gates_of(p))),
          heads * (N * (4 * K * V + 2 * C * (K + V)) + 2 * K * V + 2 * C * (K + V))};
}
inline Cost both_cost(const Case& p) {
  const double heads = double(p.B * p.T * p.H), size = p.dtype == torch::kBFloat16 ? 2 : 4;
  const double V = double(p.V), N = double(p.N);
  const double keys = double(p.K) * double(p.G()) / double(p.H);
  Cost cost = forward_cost(p);
  cost.bytes += heads * (size * (2 * keys + V + 2 * N * (keys + V)) + 8 * (N + gates_of(p)));
  return {cost.bytes, 3 * cost.flops};
}

inline Json line_of(const Case& p) {
  Json line = {{"op", "delta_product"},
               {"B", p.B},
               {"T", p.T},
               {"N", p.N},
               {"H", p.H},
               {"K", p.K},
               {"V", p.V},
               {"gate", p.gate},
               {"dtype", p.dtype == torch::kBFloat16 ? "bf16" : "fp32"}};
  if (p.channels) line["gate"] = "channels";
  if (p.G() < p.H) line["key_heads"] = p.G();
  return line;
}

}  // namespace lrnn::bench
