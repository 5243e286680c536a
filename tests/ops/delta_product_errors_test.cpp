#include "base/error.h"
#include "ops/delta_product/delta_product.h"
#include "ops/torch.h"
#include "tests/close.h"
#include "tests/ops/delta_product_cases.h"

namespace lrnn {
namespace {

using torch::Tensor;

void expect_error(const ops::DeltaProduct& in, const std::string& text) {
  try {
    ops::delta_product(in);
    ADD_FAILURE() << "no error, expected: " << text;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

TEST(DeltaProductErrors, SayWhatWasExpected) {
  const auto good = [] {
    return ops::DeltaProduct{.q = torch::zeros({2, 8, 4, 16}),
                             .k = torch::zeros({2, 8, 1, 4, 16}),
                             .v = torch::zeros({2, 8, 1, 4, 3}),
                             .beta = torch::zeros({2, 8, 1, 4}),
                             .log_gate = torch::zeros({2, 8, 4}),
                             .state = torch::zeros({2, 4, 16, 3}),
                             .scale = {},
                             .cu_seqlens = {}};
  };
  ops::delta_product(good());
  auto in = good();
  in.q = torch::zeros({2, 8, 4, 15});
  expect_error(in, "[delta_product] q must be [2, 8, 4, 16] = [B,T,G,K], got [2, 8, 4, 15]");
  in = good(), in.k = torch::zeros({2, 8, 4, 16});
  expect_error(in, "k must have 5 dimensions [B,T,N,G,K], got [2, 8, 4, 16]");
  in = good(), in.v = torch::zeros({2, 8, 2, 4, 3});
  expect_error(in, "v must be [2, 8, 1, 4, 3] = [B,T,N,H,V], got [2, 8, 2, 4, 3]");
  in = good(), in.beta = torch::zeros({2, 8, 4});
  expect_error(in, "beta must be [2, 8, 1, 4] = [B,T,N,H]");
  in = good(), in.k = torch::zeros({2, 8, 1, 3, 16}), in.q = torch::zeros({2, 8, 3, 16});
  expect_error(in,
               "[delta_product] 4 value heads cannot share 3 key heads: v is [2, 8, 1, 4, 3] = "
               "[B,T,N,H,V] and k [2, 8, 1, 3, 16] = [B,T,N,G,K]");
  in = good(), in.k = torch::zeros({2, 8, 1, 8, 16}), in.q = torch::zeros({2, 8, 8, 16});
  expect_error(in, "4 value heads cannot share 8 key heads");
  in = good(), in.k = torch::zeros({2, 8, 1, 2, 16});
  expect_error(in, "q must be [2, 8, 2, 16] = [B,T,G,K], got [2, 8, 4, 16]");
  in = good(), in.log_gate = torch::zeros({2, 8, 1, 4});
  expect_error(in,
               "log_gate must be [2, 8, 4] = [B,T,H] or [2, 8, 4, 16] = [B,T,H,K], got [2, 8, 1, "
               "4]");
  in = good(), in.log_gate = torch::zeros({2, 8, 4, 16});
  ops::delta_product(in);
  in = good(), in.log_gate = torch::zeros({2, 8, 4, 15});
  expect_error(in, "or [2, 8, 4, 16] = [B,T,H,K], got [2, 8, 4, 15]");
  in = good(), in.state = torch::zeros({2, 4, 3, 16});
  expect_error(in, "state must be [2, 4, 16, 3] = [B,H,K,V]");
  in = good(), in.v = in.v.to(torch::kFloat64);
  expect_error(in, "v is Double, but it must have the dtype of k");
  in = good(), in.k = in.k.to(torch::kInt32);
  expect_error(in, "k is Int, but it must be float32, float64, bfloat16 or float16");
  in = good(), in.state = in.state.to(torch::kBFloat16);
  expect_error(in, "state is BFloat16, but it must be float32");
  in = good(), in.v = in.v.to(torch::kMeta);
  expect_error(in, "k is on cpu and another input on meta");
  in = good(), in.cu_seqlens = torch::tensor({0, 8}, torch::kInt64);
  expect_error(in, "cu_seqlens needs B = 1");
  for (Tensor* x : {&in.q, &in.k, &in.v, &in.beta, &in.log_gate, &in.state}) *x = x->slice(0, 0, 1);
  in.cu_seqlens = torch::tensor({0, 9}, torch::kInt64);
  expect_error(in, "cu_seqlens must run from 0 to T = 8, got 0 to 9");
  in.cu_seqlens = torch::tensor({0, 9, 8}, torch::kInt64);
  in.state = Tensor();
  expect_error(in, "cu_seqlens must not decrease");
}

// A tensor of a device nobody wrote a kernel for; it has sizes and no data.
Tensor elsewhere(std::vector<int64_t> sizes) {
  auto x = c10::make_intrusive<c10::TensorImpl>(c10::DispatchKeySet(c10::DispatchKey::XPU),
                                                caffe2::TypeMeta::Make<float>(),
                                                c10::Device(c10::kXPU, 0));
  x->set_sizes_contiguous(sizes);
  return Tensor(x);
}

TEST(DeltaProductErrors, ADeviceWithoutAKernelIsNamed) {
  expect_error({.q = elsewhere({1, 2, 1, 3}),
                .k = elsewhere({1, 2, 1, 1, 3}),
                .v = elsewhere({1, 2, 1, 1, 4}),
                .beta = elsewhere({1, 2, 1, 1}),
                .log_gate = {},
                .state = {},
                .scale = {},
                .cu_seqlens = {}},
               "[delta_product] there is no kernel for xpu:0");
}

TEST(DeltaProductErrors, OnMetaTensorsOnlyTheSizesAreWorkedOut) {
  auto in = make_inputs({.B = 2, .T = 5, .N = 2, .H = 3, .K = 4, .V = 6, .gate = true});
  for (Tensor* x : {&in.q, &in.k, &in.v, &in.beta, &in.log_gate, &in.state})
    *x = x->to(torch::kMeta);
  const auto out = ops::delta_product(in);
  EXPECT_TRUE(out.o.is_meta() && out.state.is_meta());
  EXPECT_EQ(out.o.sizes(), (std::vector<int64_t>{2, 5, 3, 6}));
  EXPECT_EQ(out.state.sizes(), in.state.sizes());
}

TEST(DeltaProductErrors, SecondDerivativesAreRefused) {
  auto in = make_inputs({.T = 2});
  in.k.requires_grad_();
  const auto out = ops::delta_product(in);
  const auto first = torch::autograd::grad({out.o.sum()}, {in.k}, {}, true, true);
  EXPECT_THROW(torch::autograd::grad({first[0].sum()}, {in.k}), Error);
}

}  // namespace
}  // namespace lrnn
