#pragma once
#include <vector>

#include "ops/selective_scan/selective_scan.h"
#include "ops/torch.h"

// Random problems for the selective scan, shared by its tests and its benchmark.
namespace lrnn {

struct ScanCase {
  int64_t B = 2, T = 5, D = 3, N = 4;
  bool negative = false, state = true, outputs = true, skip = true, gate = true, bias = true,
       softplus = true;
  torch::Dtype dtype = torch::kFloat64;
  std::vector<int64_t> lengths = {};  // packed sequences, B = 1 and T their sum
};

inline std::ostream& operator<<(std::ostream& out, const ScanCase& c) {
  return out << "B " << c.B << " T " << c.T << " D " << c.D << " N " << c.N << " negative "
             << c.negative << " state " << c.state << " outputs " << c.outputs << " skip " << c.skip
             << " gate " << c.gate << " bias " << c.bias << " softplus " << c.softplus;
}

// Both ranges, every option off once, channels and states that do not fill a vector or a group,
// lengths around the chunk.
inline const std::vector<ScanCase> kScanCases = {
    {.B = 1, .T = 1, .D = 1, .N = 1},
    {.B = 2, .T = 7, .D = 5, .N = 16, .negative = true},
    {.B = 1, .T = 31, .D = 17, .N = 3, .skip = false},
    {.B = 1, .T = 32, .D = 64, .N = 16, .negative = true, .state = false},
    {.B = 2, .T = 33, .D = 70, .N = 5, .negative = true, .gate = false},
    {.B = 1, .T = 97, .D = 9, .N = 17, .bias = false},
    {.B = 1, .T = 64, .D = 40, .N = 8, .negative = true, .outputs = false},
    {.B = 1, .T = 40, .D = 3, .N = 2, .negative = true, .softplus = false},
    {.B = 1, .T = 40, .D = 3, .N = 2, .skip = false, .gate = false, .bias = false},
    {.B = 1, .T = 23, .D = 6, .N = 4, .negative = true, .lengths = {5, 0, 17, 1}},
    {.B = 1, .T = 130, .D = 4, .N = 4, .lengths = {10, 100, 20}},
};

inline ops::SelectiveScan make_scan(const ScanCase& c) {
  torch::manual_seed(1);
  const auto wide = c.dtype == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  const auto normal = [&](std::vector<int64_t> sizes) {
    return torch::randn(sizes, torch::kFloat64).to(c.dtype);
  };
  ops::SelectiveScan in;
  in.softplus = c.softplus, in.negative = c.negative;
  in.u = normal({c.B, c.T, c.D});
  in.delta = c.softplus ? normal({c.B, c.T, c.D}) : normal({c.B, c.T, c.D}).abs();
  in.A = -(2 * torch::rand({c.D, c.N}, torch::kFloat64)).exp().to(wide);
  in.B = normal({c.B, c.T, c.N});
  if (c.outputs) in.C = normal({c.B, c.T, c.N});
  if (c.outputs && c.skip) in.D = torch::randn({c.D}, torch::kFloat64).to(wide);
  if (c.outputs && c.gate) in.z = normal({c.B, c.T, c.D});
  if (c.bias) in.delta_bias = torch::rand({c.D}, torch::kFloat64).to(wide);
  int64_t S = c.B;
  if (!c.lengths.empty()) {
    std::vector<int64_t> ends = {0};
    for (const int64_t n : c.lengths) ends.push_back(ends.back() + n);
    in.cu_seqlens = torch::tensor(ends, torch::kInt64);
    S = int64_t(c.lengths.size());
  }
  if (c.state) in.state = torch::randn({S, c.D, c.N}, torch::kFloat64).to(wide);
  return in;
}

inline std::vector<std::pair<std::string, torch::Tensor*>> scan_tensors(ops::SelectiveScan& in) {
  return {{"u", &in.u},        {"delta", &in.delta}, {"A", &in.A}, {"B", &in.B},
          {"C", &in.C},        {"D", &in.D},         {"z", &in.z}, {"delta_bias", &in.delta_bias},
          {"state", &in.state}};
}

inline ops::SelectiveScan scan_in_double(ops::SelectiveScan in) {
  for (auto& [name, x] : scan_tensors(in))
    if (x->defined()) *x = x->to(torch::kFloat64);
  return in;
}

// Outputs and the gradients of <y, wy> + <state, ws> for fixed random wy, ws.
using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

template <class Function> NamedTensors scan_everything(ops::SelectiveScan in, Function&& function) {
  for (auto& [name, x] : scan_tensors(in))
    if (x->defined()) *x = x->detach().clone(torch::MemoryFormat::Contiguous).requires_grad_();
  const ops::SelectiveScanResult out = function(in);
  NamedTensors all;
  torch::manual_seed(7);
  torch::Tensor loss = torch::zeros({}, torch::kFloat64);
  for (const auto& [name, x] : {std::pair{"y", out.y}, std::pair{"final state", out.state}}) {
    if (!x.defined()) continue;
    all.emplace_back(name, x.detach());
    loss = loss + (x.to(torch::kFloat64) * torch::randn(x.sizes(), torch::kFloat64)).sum();
  }
  loss.backward();
  for (auto& [name, x] : scan_tensors(in))
    if (x->defined())
      all.emplace_back("d" + name, x->grad().defined() ? x->grad() : torch::zeros_like(*x));
  return all;
}

}  // namespace lrnn
