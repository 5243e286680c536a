#include "ops/every_op.h"

#include "ops/delta_product/case.h"
#include "ops/gated_linear_attention/case.h"
#include "ops/mlstm/case.h"
#include "ops/norm/case.h"
#include "ops/rwkv7/case.h"
#include "ops/selective_scan/case.h"
#include "ops/short_conv/case.h"
#include "ops/slstm/case.h"
#include "ops/swiglu/case.h"
#include "ops/torch.h"
#include "ops/wide_sigmoid/wide_sigmoid.h"

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

WideSigmoid make_wide_sigmoid(const RowsCase& c, torch::Dtype dtype) {
  torch::manual_seed(1);
  return {.x = normal({c.rows, c.D}).to(dtype), .scale = 2};
}

// Ops that C++ calls with tensors instead of a struct.
template <auto f> NormResult rms(const RmsNorm& in) { return {f(in.x, in.weight, in.eps)}; }
template <auto f> NormResult l2(const L2Norm& in) { return {f(in.x, in.eps)}; }
template <Tensor (*f)(const Tensor&, const Tensor&)> SwigluResult two(const Swiglu& in) {
  return {f(in.gate, in.up)};
}
template <Tensor (*f)(const Tensor&)> SwigluResult halves(const SwigluHalves& in) {
  return {f(in.gate_up)};
}
template <auto f> WideSigmoidResult sigmoid_of(const WideSigmoid& in) {
  return {f(in.x, in.scale)};
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
      declared(typical_short_convs(), make_short_conv, short_conv, short_conv_definition),
      declared(typical_rows(), make_rms_norm, rms<rms_norm>, rms<rms_norm_definition>),
      declared(typical_rows(), make_l2_norm, l2<l2_norm>, l2<l2_norm_definition>),
      declared(typical_rows(), make_swiglu, two<swiglu>, two<swiglu_definition>),
      declared(typical_rows(), make_swiglu_halves, halves<swiglu>, halves<swiglu_definition>),
      declared(typical_rows(), make_wide_sigmoid, sigmoid_of<wide_sigmoid>,
               sigmoid_of<wide_sigmoid_definition>),
  };
}

Agreement agreement(const Problem& problem, torch::Device device) {
  const Tensors want = everything(in_double(problem.in), problem.definition),
                got = everything(moved(problem.in, device), problem.kernel);
  return {worst(got, want, false), worst(got, want, true)};
}

}  // namespace lrnn::ops
