#include "ops/every_op.h"

#include "ops/delta_product/case.h"
#include "ops/gated_linear_attention/case.h"
#include "ops/mlstm/case.h"
#include "ops/pointwise/pointwise.h"
#include "ops/rwkv7/case.h"
#include "ops/selective_scan/case.h"
#include "ops/short_conv/short_conv.h"
#include "ops/slstm/case.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

template <class In, class Case>
CheckedOp declared(const std::vector<Case>& cases, In (*make)(const Case&, torch::Dtype),
                   OpFunction<In> kernel, OpFunction<In> definition) {
  CheckedOp out{In::kName, {}};
  for (const auto& c : cases)
    out.problems.push_back(
        [=](torch::Dtype dtype) { return problem_of(make(c, dtype), kernel, definition); });
  return out;
}

// Ops that are plain functions of tensors.
CheckedOp plain(const char* name, const std::function<Tensors(torch::Dtype)>& in,
                const std::function<Tensor(Tensors)>& kernel,
                const std::function<Tensor(Tensors)>& definition) {
  const auto named = [](const std::function<Tensor(Tensors)>& f) {
    return [f](const Tensors& x) { return Tensors{{"out y", f(x)}}; };
  };
  return {name, {[=](torch::Dtype dtype) {
            torch::manual_seed(1);
            return Problem{in(dtype), named(kernel), named(definition)};
          }}};
}

DeltaProduct make_delta_product(const DeltaProductCase& c, torch::Dtype dtype) {
  auto of = c;
  of.dtype = dtype;
  auto in = make_inputs(of);
  // Every step size that a model can use: 0, 1 and 2 exactly, and what lies between.
  in.beta = torch::where(torch::rand_like(in.beta) < 0.3, in.beta.round(), in.beta);
  return in;
}
SelectiveScan make_typical_scan(const ScanCase& c, torch::Dtype dtype) {
  auto of = c;
  of.dtype = dtype;
  return make_scan(of);
}

Tensors conv_inputs(torch::Dtype dtype) {
  return {{"x", normal({2, 67, 40}).to(dtype)},
          {"weight", normal({40, 1, 4}).to(dtype)},
          {"bias", normal({40}).to(dtype)},
          {"state", normal({2, 40, 4}).to(dtype)}};
}
template <ShortConvResult (*f)(const ShortConv&)> Tensor conv(Tensors x) {
  return f({.x = x["x"],
            .weight = x["weight"],
            .bias = x["bias"],
            .state = x["state"],
            .silu = true,
            .cu_seqlens = {}})
      .y;
}

double worst(const Tensors& got, const Tensors& want, bool gradients) {
  double out = 0;
  for (const auto& [name, x] : want) {
    if (name.starts_with("d") != gradients) continue;
    const auto found = got.find(name);
    if (found == got.end() || found->second.sizes() != x.sizes()) return std::nan("");
    const Tensor y = found->second.to(torch::kCPU, torch::kFloat64);
    const double error = ((y - x).norm() / (x.norm() + 1e-30)).item<double>();
    if (!(error <= out)) out = error;  // so that a NaN stays
    if (std::isnan(out)) return out;
  }
  return out;
}

}  // namespace

std::vector<CheckedOp> every_op() {
  return {
      declared(typical_delta_products(), make_delta_product, delta_product,
               delta_product_definition),
      declared(typical_scans(), make_typical_scan, selective_scan, selective_scan_definition),
      declared(typical_glas(), make_gla, gated_linear_attention, gated_linear_attention_definition),
      declared(typical_rwkv7s(), make_rwkv7, rwkv7, rwkv7_definition),
      declared(typical_slstms(), make_slstm, slstm, slstm_definition),
      declared(typical_mlstms(), make_mlstm, mlstm, mlstm_definition),
      plain("short_conv", conv_inputs, conv<short_conv>, conv<short_conv_definition>),
      plain(
          "rms_norm",
          [](torch::Dtype dtype) {
            return Tensors{{"x", normal({67, 40}).to(dtype)}, {"weight", normal({40}).to(dtype)}};
          },
          [](Tensors x) { return rms_norm(x["x"], x["weight"], 1e-6); },
          [](Tensors x) { return rms_norm_definition(x["x"], x["weight"], 1e-6); }),
      plain(
          "l2_norm",
          [](torch::Dtype dtype) {
            return Tensors{{"x", normal({67, 40}).to(dtype)}};
          },
          [](Tensors x) { return l2_norm(x["x"], 1e-6); },
          [](Tensors x) { return l2_norm_definition(x["x"], 1e-6); }),
      plain(
          "swiglu",
          [](torch::Dtype dtype) {
            return Tensors{{"gate", normal({67, 40}).to(dtype)},
                           {"up", normal({67, 40}).to(dtype)}};
          },
          [](Tensors x) { return swiglu(x["gate"], x["up"]); },
          [](Tensors x) { return swiglu_definition(x["gate"], x["up"]); }),
  };
}

Agreement agreement(const Problem& problem, torch::Device device) {
  const Tensors want = everything(in_double(problem.in), problem.definition),
                got = everything(moved(problem.in, device), problem.kernel);
  return {worst(got, want, false), worst(got, want, true)};
}

}  // namespace lrnn::ops
