#pragma once
#include <vector>

#include "ops/delta_product/delta_product.h"
#include "ops/torch.h"

// Random problems for the delta product, shared by its tests.
namespace lrnn {

struct Case {
  int64_t B = 2, T = 5, N = 1, H = 2, K = 3, V = 3;
  bool gate = false, state = true, q = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};  // packed sequences, B = 1 and T their sum
  double cancels = 1;  // how much smaller a result is than its terms, whose rounding it inherits
};

inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "B " << c.B << " T " << c.T << " N " << c.N << " H " << c.H << " K " << c.K << " V "
             << c.V << " gate " << c.gate << " state " << c.state << " q " << c.q << " " << c.dtype;
}

inline ops::DeltaProduct make_inputs(const Case& c, uint64_t seed = 1) {
  torch::manual_seed(seed);
  const auto wide = c.dtype == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const auto normal = [&](std::vector<int64_t> sizes) {
    return torch::randn(sizes, torch::kFloat64);
  };
  ops::DeltaProduct in;
  const auto unit = [](const torch::Tensor& x) { return x / x.norm(2, -1, true); };
  if (c.q) in.q = unit(normal({c.B, c.T, c.H, c.K})).to(c.dtype);
  in.k = unit(normal({c.B, c.T, c.N, c.H, c.K})).to(c.dtype);
  in.v = normal({c.B, c.T, c.N, c.H, c.V}).to(c.dtype);
  in.beta = (2 * torch::rand({c.B, c.T, c.N, c.H}, torch::kFloat64)).to(c.dtype);
  if (c.gate) in.log_gate = (-0.3 * torch::rand({c.B, c.T, c.H}, torch::kFloat64)).to(wide);
  if (!c.lengths.empty()) {
    std::vector<int64_t> ends = {0};
    for (const int64_t n : c.lengths) ends.push_back(ends.back() + n);
    in.cu_seqlens = torch::tensor(ends, torch::kInt64);
  }
  const int64_t S = c.lengths.empty() ? c.B : int64_t(c.lengths.size());
  if (c.state) in.state = normal({S, c.H, c.K, c.V}).to(wide);
  return in;
}

// Outputs and the gradients of <o, wo> + <state, ws> for fixed random wo, ws.
struct Everything {
  std::vector<std::pair<std::string, torch::Tensor>> tensors;
};

template <class Function> Everything everything(ops::DeltaProduct in, Function&& function) {
  std::vector<std::pair<std::string, torch::Tensor*>> leaves = {{"q", &in.q},
                                                                {"k", &in.k},
                                                                {"v", &in.v},
                                                                {"beta", &in.beta},
                                                                {"log_gate", &in.log_gate},
                                                                {"state", &in.state}};
  for (auto& [name, x] : leaves)
    if (x->defined()) *x = x->detach().clone(torch::MemoryFormat::Contiguous).requires_grad_();
  const ops::DeltaProductResult out = function(in);
  Everything all;
  torch::manual_seed(7);
  torch::Tensor loss = torch::zeros({}, torch::kFloat64);
  for (const auto& [name, x] : {std::pair{"o", out.o}, std::pair{"final state", out.state}}) {
    if (!x.defined()) continue;
    all.tensors.emplace_back(name, x.detach());
    loss = loss + (x.to(torch::kFloat64) * torch::randn(x.sizes(), torch::kFloat64)).sum();
  }
  if (loss.requires_grad()) loss.backward();
  for (auto& [name, x] : leaves)
    if (x->defined())
      all.tensors.emplace_back("d" + name, x->grad().defined() ? x->grad() : torch::zeros_like(*x));
  return all;
}

// The definition on the same numbers in double.
inline ops::DeltaProduct in_double(ops::DeltaProduct in) {
  for (torch::Tensor* x : {&in.q, &in.k, &in.v, &in.beta, &in.log_gate, &in.state})
    if (x->defined()) *x = x->to(torch::kFloat64);
  return in;
}

}  // namespace lrnn
