#pragma once
#include <gtest/gtest.h>

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

// Tokens begin .. end - 1, behind a state.
inline ops::SelectiveScan scan_piece(ops::SelectiveScan in, int64_t begin, int64_t end,
                                     const torch::Tensor& state) {
  for (torch::Tensor* x : {&in.u, &in.delta, &in.B, &in.C, &in.z}) *x = x->slice(1, begin, end);
  in.state = state;
  return in;
}

// A sequence in two pieces has the bits of the whole.
template <class Function>
void expect_pieces_to_be_the_whole(const ops::SelectiveScan& in, Function&& function) {
  const int64_t T = in.u.size(1);
  const auto whole = function(in);
  for (const int64_t cut : {int64_t(0), int64_t(1), int64_t(32), T - 1, T}) {
    const auto first = function(scan_piece(in, 0, cut, in.state)),
               second = function(scan_piece(in, cut, T, first.state));
    EXPECT_TRUE(torch::equal(torch::cat({first.y, second.y}, 1), whole.y)) << cut;
    EXPECT_TRUE(torch::equal(second.state, whole.state)) << cut;
  }
}

// What the range is for: at a = -1 the state is the parity of the tokens that flip it. The scan's
// inputs, and the y that it must give.
inline std::pair<ops::SelectiveScan, torch::Tensor> parity_forever() {
  const int64_t T = 20000;
  torch::manual_seed(3);
  const torch::Tensor bit = torch::randint(2, {1, T, 1}, torch::kInt64);
  ops::SelectiveScan in;
  in.negative = true, in.softplus = false;
  in.u = torch::zeros({1, T, 1}), in.B = torch::zeros({1, T, 1}), in.C = torch::ones({1, T, 1});
  in.delta = bit.to(torch::kFloat32) * 200;
  in.A = -torch::ones({1, 1});
  in.state = torch::ones({1, 1, 1});
  return {in, 1 - 2 * bit.cumsum(1).remainder(2).to(torch::kFloat32)};
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
