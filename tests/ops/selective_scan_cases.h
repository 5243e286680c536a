#pragma once
#include <vector>

#include "ops/selective_scan/case.h"
#include "ops/torch.h"

// Random problems for the selective scan, shared by its tests and its benchmark.
namespace lrnn {

using ops::kScanCases;
using ops::ScanCase;

inline ops::SelectiveScan make_scan(const ScanCase& c) { return ops::make_scan(c, c.dtype); }

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
