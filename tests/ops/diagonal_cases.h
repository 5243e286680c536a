#pragma once
#include <functional>
#include <map>
#include <vector>

#include "ops/gated_linear_attention/gated_linear_attention.h"
#include "ops/rwkv7/rwkv7.h"
#include "ops/torch.h"

// Random problems for gated linear attention and RWKV-7, shared by their tests and benchmark. Both
// are seen as functions of named tensors.
namespace lrnn {

struct DiagonalCase {
  bool rwkv7 = false;
  int64_t B = 2, T = 5, H = 2, K = 3, V = 4;
  bool negative = false, state = true, q = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};  // packed sequences, B = 1 and T their sum
};

inline std::ostream& operator<<(std::ostream& out, const DiagonalCase& c) {
  return out << (c.rwkv7 ? "rwkv7" : "gla") << " B " << c.B << " T " << c.T << " H " << c.H << " K "
             << c.K << " V " << c.V << " negative " << c.negative << " state " << c.state << " q "
             << c.q << " " << c.dtype;
}

// Keys and values that do not fill a vector, lengths around the chunk, every option off once.
inline std::vector<DiagonalCase> diagonal_cases() {
  std::vector<DiagonalCase> out;
  for (const bool rwkv7 : {false, true})
    for (const DiagonalCase& c : std::vector<DiagonalCase>{
             {.B = 1, .T = 1, .H = 1, .K = 1, .V = 1},
             {.B = 2, .T = 31, .H = 2, .K = 3, .V = 17},
             {.B = 1, .T = 32, .H = 3, .K = 16, .V = 16, .negative = true, .state = false},
             {.B = 1, .T = 33, .H = 1, .K = 20, .V = 5, .negative = true},
             {.B = 1, .T = 97, .H = 2, .K = 33, .V = 64, .negative = true},
             {.B = 1, .T = 64, .H = 1, .K = 64, .V = 40, .q = false},
             {.B = 1, .T = 23, .H = 2, .K = 4, .V = 20, .negative = true, .lengths = {5, 0, 17, 1}},
             {.B = 1, .T = 130, .H = 1, .K = 4, .V = 6, .lengths = {10, 100, 20}}}) {
      if (rwkv7 && c.negative && c.K == 16) continue;
      out.push_back(c);
      out.back().rwkv7 = rwkv7;
      if (rwkv7) out.back().negative = false;
    }
  return out;
}

using TensorMap = std::map<std::string, torch::Tensor>;

inline TensorMap diagonal_inputs(const DiagonalCase& c) {
  torch::manual_seed(1);
  const auto wide = c.dtype == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const std::vector<int64_t> keys = {c.B, c.T, c.H, c.K}, values = {c.B, c.T, c.H, c.V};
  const auto normal = [&](const std::vector<int64_t>& sizes) {
    return torch::randn(sizes, torch::kFloat64);
  };
  TensorMap x;
  if (c.q) x["q"] = normal(keys).to(c.dtype);
  x["k"] = normal(keys).to(c.dtype), x["v"] = normal(values).to(c.dtype);
  // Down to transitions of 0.4, or -0.2: a state is not forgotten at once.
  x["log_decay"] = (-0.9 * torch::rand(keys, torch::kFloat64)).to(wide);
  if (c.rwkv7) {
    const torch::Tensor kk = normal(keys);
    x["kk"] = (kk / kk.norm(2, -1, true)).to(c.dtype);
    x["a"] = (2 * torch::rand(keys, torch::kFloat64)).to(c.dtype);
  }
  int64_t S = c.B;
  if (!c.lengths.empty()) {
    std::vector<int64_t> ends = {0};
    for (const int64_t n : c.lengths) ends.push_back(ends.back() + n);
    x["cu_seqlens"] = torch::tensor(ends, torch::kInt64);
    S = int64_t(c.lengths.size());
  }
  if (c.state) x["state"] = normal({S, c.H, c.K, c.V}).to(wide);
  return x;
}

// o and the final state, by the op or by its definition.
inline std::pair<torch::Tensor, torch::Tensor> run_diagonal(const DiagonalCase& c, TensorMap x,
                                                            bool definition = false) {
  if (c.rwkv7) {
    const ops::Rwkv7 in{.r = x["q"],
                        .log_w = x["log_decay"],
                        .k = x["k"],
                        .v = x["v"],
                        .kk = x["kk"],
                        .a = x["a"],
                        .state = x["state"],
                        .scale = 0.7,
                        .cu_seqlens = x["cu_seqlens"]};
    const auto out = definition ? ops::rwkv7_definition(in) : ops::rwkv7(in);
    return {out.o, out.state};
  }
  const ops::GatedLinearAttention in{.q = x["q"],
                                     .k = x["k"],
                                     .v = x["v"],
                                     .log_gate = x["log_decay"],
                                     .state = x["state"],
                                     .scale = {},
                                     .negative = c.negative,
                                     .cu_seqlens = x["cu_seqlens"]};
  const auto out =
      definition ? ops::gated_linear_attention_definition(in) : ops::gated_linear_attention(in);
  return {out.o, out.state};
}

// Outputs and the gradients of <o, wo> + <state, ws> for fixed random wo, ws.
inline TensorMap diagonal_everything(const DiagonalCase& c, TensorMap x, bool definition = false) {
  for (auto& [name, tensor] : x) {
    if (!tensor.defined() || name == "cu_seqlens") continue;
    if (definition) tensor = tensor.to(torch::kFloat64);
    tensor = tensor.detach().clone(torch::MemoryFormat::Contiguous).requires_grad_();
  }
  const auto [o, state] = run_diagonal(c, x, definition);
  TensorMap all;
  torch::manual_seed(7);
  torch::Tensor loss =
      (state.to(torch::kFloat64) * torch::randn(state.sizes(), torch::kFloat64)).sum();
  all["final state"] = state.detach();
  if (o.defined()) {
    all["o"] = o.detach();
    loss = loss + (o.to(torch::kFloat64) * torch::randn(o.sizes(), torch::kFloat64)).sum();
  }
  loss.backward();
  for (const auto& [name, tensor] : x)
    if (tensor.defined() && name != "cu_seqlens")
      all["d" + name] = tensor.grad().defined() ? tensor.grad() : torch::zeros_like(tensor);
  return all;
}

}  // namespace lrnn
