#pragma once
#include "tests/close.h"
#include "tests/cuda/device.h"
#include "tests/ops/delta_product_cases.h"

// The delta product on the GPU as a function of tensors on the CPU, so that the problems, the
// weights of the loss and the definition are those of the CPU tests.
namespace lrnn {

inline ops::DeltaProduct moved(ops::DeltaProduct in) {
  for (torch::Tensor* x : {&in.q, &in.k, &in.v, &in.beta, &in.log_gate, &in.state, &in.cu_seqlens})
    if (x->defined()) *x = x->to(torch::kCUDA);
  return in;
}

inline ops::DeltaProductResult on_gpu(const ops::DeltaProduct& in) {
  auto out = ops::delta_product(moved(in));
  if (out.o.defined()) out.o = out.o.cpu();
  out.state = out.state.cpu();
  return out;
}

inline Case with_channels(Case c) {  // a gate per key channel
  c.gate = c.channels = true;
  return c;
}

// Every output and gradient of `got` against `want`.
inline void expect_all_close(const Everything& got, const Everything& want, double limit) {
  ASSERT_EQ(got.tensors.size(), want.tensors.size());
  for (size_t i = 0; i < got.tensors.size(); ++i)
    EXPECT_CLOSE_TO(got.tensors[i].first, got.tensors[i].second, want.tensors[i].second, limit);
}

inline Everything defined_in_double(const ops::DeltaProduct& in) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // its matrices are too small to share
  const Everything want = everything(in_double(in), ops::delta_product_definition);
  at::set_num_threads(threads);
  return want;
}

// Reflections, beta = 2, along almost one direction, where sums over a chunk cancel most.
inline ops::DeltaProduct along_one_direction(ops::DeltaProduct in) {
  in.beta = torch::full(in.beta.sizes(), 2.f);
  const torch::Tensor near =
      in.k.slice(1, 0, 1).to(torch::kFloat32) + 0.01 * in.k.to(torch::kFloat32);
  in.k = (near / near.norm(2, -1, true)).to(torch::kBFloat16);
  return in;
}

// The kernel that `in` asks for beside the exact one: outputs and gradients in bfloat16, the state.
inline void expect_near_exact(const ops::DeltaProduct& in) {
  auto exact = in;
  exact.accuracy = "exact";
  expect_all_close(everything(in, on_gpu), everything(exact, on_gpu), 3e-3);
  const torch::NoGradGuard no_grad;
  EXPECT_CLOSE_TO("state", on_gpu(in).state, on_gpu(exact).state, 1e-3);
}

inline void expect_same_bits(const Everything& a, const Everything& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i)
    EXPECT_TRUE(torch::equal(a.tensors[i].second, b.tensors[i].second)) << a.tensors[i].first;
}

}  // namespace lrnn
