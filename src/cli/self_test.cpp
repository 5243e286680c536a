#include "cli/self_test.h"

#include <algorithm>
#include <functional>

#include "ops/delta_product/delta_product.h"
#include "ops/gated_linear_attention/gated_linear_attention.h"
#include "ops/mlstm/mlstm.h"
#include "ops/pointwise/pointwise.h"
#include "ops/rwkv7/rwkv7.h"
#include "ops/selective_scan/selective_scan.h"
#include "ops/short_conv/short_conv.h"
#include "ops/slstm/slstm.h"
#include "ops/torch.h"

namespace lrnn::cli {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

struct Op {
  const char* name;
  std::function<Tensors()> inputs;  // in double precision
  Function fast, definition;
};

Tensors random_delta_product() {
  // An odd length, and every beta a model can use: 0, 1 and 2 exactly, and what lies between.
  const int64_t B = 2, T = 67, N = 2, H = 3, K = 16, V = 24;
  Tensor beta = 2 * torch::rand({B, T, N, H});
  beta = torch::where(torch::rand_like(beta) < 0.3, beta.round(), beta);
  return {
      torch::randn({B, T, H, K}),    ops::l2_norm_definition(torch::randn({B, T, N, H, K}), 1e-6),
      torch::randn({B, T, N, H, V}), beta,
      -0.1 * torch::rand({B, T, H}), torch::randn({B, H, K, V})};
}

ops::DeltaProduct delta_product_of(const Tensors& x) {
  return {.q = x[0],
          .k = x[1],
          .v = x[2],
          .beta = x[3],
          .log_gate = x[4],
          .state = x[5],
          .scale = {},
          .cu_seqlens = {}};
}

Tensors random_selective_scan() {
  const int64_t B = 2, T = 67, D = 40, N = 16;
  return {torch::randn({B, T, D}), torch::randn({B, T, D}), -4 * torch::rand({D, N}),
          torch::randn({B, T, N}), torch::randn({B, T, N}), torch::randn({D}),
          torch::randn({B, T, D}), torch::randn({D}),       torch::randn({B, D, N})};
}

ops::SelectiveScan selective_scan_of(const Tensors& x) {
  return {.u = x[0],
          .delta = x[1],
          .A = x[2],
          .B = x[3],
          .C = x[4],
          .D = x[5],
          .z = x[6],
          .delta_bias = x[7],
          .state = x[8],
          .softplus = true,
          .negative = true,
          .cu_seqlens = {}};
}

Tensors random_gla() {
  const int64_t B = 2, T = 67, H = 3, K = 16, V = 24;
  return {torch::randn({B, T, H, K}), torch::randn({B, T, H, K}), torch::randn({B, T, H, V}),
          -torch::rand({B, T, H, K}), torch::randn({B, H, K, V})};
}

ops::GatedLinearAttention gla_of(const Tensors& x) {
  return {.q = x[0],
          .k = x[1],
          .v = x[2],
          .log_gate = x[3],
          .state = x[4],
          .scale = {},
          .negative = true,
          .cu_seqlens = {}};
}

Tensors random_rwkv7() {
  const int64_t B = 2, T = 67, H = 3, K = 16, V = 24;
  return {torch::randn({B, T, H, K}),
          -0.3 * torch::rand({B, T, H, K}),
          torch::randn({B, T, H, K}),
          torch::randn({B, T, H, V}),
          ops::l2_norm_definition(torch::randn({B, T, H, K}), 1e-6),
          2 * torch::rand({B, T, H, K}),
          torch::randn({B, H, K, V})};
}

ops::Rwkv7 rwkv7_of(const Tensors& x) {
  return {.r = x[0],
          .log_w = x[1],
          .k = x[2],
          .v = x[3],
          .kk = x[4],
          .a = x[5],
          .state = x[6],
          .scale = 1,
          .cu_seqlens = {}};
}

ops::ShortConv short_conv_of(const Tensors& x) {
  return {.x = x[0], .weight = x[1], .bias = x[2], .state = x[3], .silu = true, .cu_seqlens = {}};
}

Tensors random_slstm() {
  const int64_t B = 2, T = 67, H = 2, D = 24;
  Tensor state = torch::randn({B, 4, H, D});
  state.select(1, 2).abs_();  // n counts
  return {torch::randn({B, T, H, 4, D}), torch::randn({H, D, 4, D}) / 5, torch::randn({H, 4, D}),
          state};
}

ops::Slstm slstm_of(const Tensors& x) {
  return {.wx = x[0], .R = x[1], .bias = x[2], .state = x[3], .cu_seqlens = {}};
}

Tensors random_mlstm() {
  // Keys and queries that look the same way keep n . q away from zero, by which h is divided.
  const int64_t B = 2, T = 67, H = 2, K = 16, V = 24;
  return {1 + 0.3 * torch::randn({B, T, H, K}),
          1 + 0.3 * torch::randn({B, T, H, K}),
          torch::randn({B, T, H, V}),
          torch::randn({B, T, H}),
          3 + torch::randn({B, T, H}),
          torch::randn({B, H, K, V}),
          torch::rand({B, H, K}),
          torch::randn({B, H})};
}

ops::Mlstm mlstm_of(const Tensors& x) {
  return {.q = x[0],
          .k = x[1],
          .v = x[2],
          .i = x[3],
          .f = x[4],
          .state = {x[5], x[6], x[7]},
          .scale = {},
          .cu_seqlens = {}};
}

template <class Result> Tensors both(const Result& r) { return {r.o, r.state}; }
Tensors both(const ops::ShortConvResult& r) { return {r.y, r.state}; }
Tensors both(const ops::SelectiveScanResult& r) { return {r.y, r.state}; }
Tensors both(const ops::SlstmResult& r) { return {r.h, r.state}; }
Tensors all_four(const ops::MlstmResult& r) { return {r.h, r.state.C, r.state.n, r.state.m}; }

std::vector<Op> all_ops() {
  return {
      {"delta_product", random_delta_product,
       [](auto& x) { return both(ops::delta_product(delta_product_of(x))); },
       [](auto& x) { return both(ops::delta_product_definition(delta_product_of(x))); }},
      {"selective_scan", random_selective_scan,
       [](auto& x) { return both(ops::selective_scan(selective_scan_of(x))); },
       [](auto& x) { return both(ops::selective_scan_definition(selective_scan_of(x))); }},
      {"gated_linear_attention", random_gla,
       [](auto& x) { return both(ops::gated_linear_attention(gla_of(x))); },
       [](auto& x) { return both(ops::gated_linear_attention_definition(gla_of(x))); }},
      {"rwkv7", random_rwkv7, [](auto& x) { return both(ops::rwkv7(rwkv7_of(x))); },
       [](auto& x) { return both(ops::rwkv7_definition(rwkv7_of(x))); }},
      {"slstm", random_slstm, [](auto& x) { return both(ops::slstm(slstm_of(x))); },
       [](auto& x) { return both(ops::slstm_definition(slstm_of(x))); }},
      {"mlstm", random_mlstm, [](auto& x) { return all_four(ops::mlstm(mlstm_of(x))); },
       [](auto& x) { return all_four(ops::mlstm_definition(mlstm_of(x))); }},
      {"short_conv",
       [] {
         return Tensors{torch::randn({2, 67, 40}), torch::randn({40, 1, 4}), torch::randn({40}),
                        torch::randn({2, 40, 4})};
       },
       [](auto& x) { return both(ops::short_conv(short_conv_of(x))); },
       [](auto& x) { return both(ops::short_conv_definition(short_conv_of(x))); }},
      {"rms_norm",
       [] {
         return Tensors{torch::randn({67, 40}), torch::randn({40})};
       },
       [](auto& x) { return Tensors{ops::rms_norm(x[0], x[1], 1e-6)}; },
       [](auto& x) { return Tensors{ops::rms_norm_definition(x[0], x[1], 1e-6)}; }},
      {"l2_norm",
       [] {
         return Tensors{torch::randn({67, 40})};
       },
       [](auto& x) { return Tensors{ops::l2_norm(x[0], 1e-6)}; },
       [](auto& x) { return Tensors{ops::l2_norm_definition(x[0], 1e-6)}; }},
      {"swiglu",
       [] {
         return Tensors{torch::randn({67, 40}), torch::randn({67, 40})};
       },
       [](auto& x) { return Tensors{ops::swiglu(x[0], x[1])}; },
       [](auto& x) { return Tensors{ops::swiglu_definition(x[0], x[1])}; }},
  };
}

// Outputs, then the gradients of a random weighting of them.
struct Values {
  Tensors outputs, gradients;
};

Values evaluate(const Function& function, const Tensors& inputs, torch::Dtype dtype) {
  Tensors leaves;
  for (const auto& x : inputs) leaves.push_back(x.detach().to(dtype).clone().requires_grad_());
  Values out;
  out.outputs = function(leaves);
  torch::manual_seed(1);
  Tensor sum = torch::zeros({}, torch::kFloat64);
  for (const auto& y : out.outputs)
    sum = sum + (y.to(torch::kFloat64) * torch::randn(y.sizes(), torch::kFloat64)).sum();
  sum.backward();
  for (const auto& x : leaves) out.gradients.push_back(x.grad());
  return out;
}

double worst(const Tensors& got, const Tensors& want) {
  double out = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!got[i].defined() || got[i].sizes() != want[i].sizes()) return std::nan("");
    const double error = ((got[i].detach().to(torch::kFloat64) - want[i].detach()).norm() /
                          (want[i].detach().norm() + 1e-30))
                             .item<double>();
    if (!(error <= out)) out = error;  // so that a NaN stays
    if (std::isnan(out)) return out;
  }
  return out;
}

}  // namespace

std::vector<OpCheck> check_ops() {
  std::vector<OpCheck> out;
  for (const auto& op : all_ops()) {
    torch::manual_seed(0);
    Tensors inputs;
    for (const auto& x : op.inputs()) inputs.push_back(x.to(torch::kFloat64));
    for (const auto dtype : {torch::kFloat32, torch::kFloat64}) {
      // Both sides see the same rounded inputs.
      Tensors rounded;
      for (const auto& x : inputs) rounded.push_back(x.to(dtype).to(torch::kFloat64));
      const auto want = evaluate(op.definition, rounded, torch::kFloat64);
      const auto got = evaluate(op.fast, rounded, dtype);
      const bool single = dtype == torch::kFloat32;
      const double limit = single ? 1e-5 : 1e-11;
      const char* name = single ? "float32" : "float64";
      out.push_back({op.name, "forward", name, worst(got.outputs, want.outputs), limit});
      out.push_back({op.name, "gradients", name, worst(got.gradients, want.gradients), limit});
    }
  }
  return out;
}

}  // namespace lrnn::cli
