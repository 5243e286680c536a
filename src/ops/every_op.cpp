#include "ops/every_op.h"

#include "ops/delta_product/case.h"
#include "ops/diagonal/case.h"
#include "ops/linear_cross_entropy/case.h"
#include "ops/mlstm/case.h"
#include "ops/row_cases.h"
#include "ops/selective_scan/case.h"
#include "ops/short_conv/case.h"
#include "ops/slstm/case.h"
#include "ops/titans/case.h"
#include "ops/torch.h"
#include "ops/ttt/case.h"
#include "ops/wide_sigmoid/wide_sigmoid.h"

namespace lrnn::ops {
namespace {

template <class Case> double slack_of(const Case&) { return 1; }
// Kernels that round what they multiply.
template <> double slack_of(const DeltaProductCase& c) {
  return c.accuracy == "fast" || c.accuracy == "accurate" ? 2 : 1;
}

template <class Case, class Make>
CheckedOp op_of(const std::string& name, bool recurrent, const Cases<Case>& cases, Make make) {
  const auto ask = [make](const Case& c) -> Ask {
    return {shape_of(c),
            c.dtype,
            c.B,
            c.T,
            flops_per_token(c),
            slack_of(c),
            [c, make](int64_t B, int64_t T, const Draw& draw) {
              Case resized = c;
              resized.B = B, resized.T = T;
              return make(resized, draw);
            }};
  };
  const auto asks = [&](const std::vector<Case>& of) {
    std::vector<Ask> out;
    for (const Case& c : of) out.push_back(ask(c));
    return out;
  };
  std::vector<Case> known = cases.typical;
  known.insert(known.end(), cases.kernels.begin(), cases.kernels.end());
  return {name,
          recurrent,
          asks(cases.typical),
          asks(cases.kernels),
          asks(cases.timed),
          asks(cases.timed_on_gpu),
          [known, ask](Chance& chance) { return ask(varied(chance.of(known), chance)); }};
}

// Of an op that is declared with a struct of inputs.
template <class In, class Case>
CheckedOp declared(const Cases<Case>& cases, In (*make)(const Case&, const Draw&),
                   OpFunction<In> kernel, OpFunction<In> definition, bool recurrent = true) {
  return op_of(In::kName, recurrent, cases, [=](const Case& c, const Draw& draw) {
    return problem_of(make(c, draw), kernel, definition);
  });
}

DeltaProduct with_whole_steps(const DeltaProductCase& c, const Draw& draw) {
  auto in = make_delta_product(c, draw);
  // Every step size that a model can use: 0, 1 and 2 exactly, and what lies between.
  in.beta = torch::where(torch::rand_like(in.beta) < 0.3, in.beta.round(), in.beta);
  return in;
}

WideSigmoid make_wide_sigmoid(const RowsCase& c, const Draw& draw) {
  return {.x = make_rows(c, draw), .scale = 2};
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

// The same infinity is no difference, and has no size: a stabiliser has one before the first token.
double size_of(const Tensor& x) {
  return torch::where(x.isinf(), torch::zeros_like(x), x).norm().item<double>();
}
double distance(const Tensor& y, const Tensor& x) {
  return torch::where(y == x, torch::zeros_like(x), y - x).norm().item<double>();
}
double root_of_entries(const Tensor& x) {
  return std::sqrt(double(std::max<int64_t>(x.numel(), 1)));
}

double worst(const Tensors& got, const Tensors& want, bool gradients, double floor) {
  double out = 0, largest = 0;
  const auto asked = [&](const std::string& name) { return name.starts_with("d") == gradients; };
  for (const auto& [name, x] : want)
    if (asked(name)) largest = std::max(largest, size_of(x) / root_of_entries(x));
  for (const auto& [name, x] : want) {
    if (!asked(name)) continue;
    const auto found = got.find(name);
    if (found == got.end() || found->second.sizes() != x.sizes()) return std::nan("");
    const Tensor y = found->second.to(torch::kCPU, torch::kFloat64);
    const double size = std::max(size_of(x), floor * largest * root_of_entries(x));
    const double error = distance(y, x) / (size + 1e-30);
    if (!(error <= out)) out = error;          // so that a NaN stays
    if (std::isnan(out)) return std::nan("");  // without a sign
  }
  return out;
}

}  // namespace

std::vector<CheckedOp> every_op() {
  const auto rows = rows_cases();
  return {
      declared(delta_product_cases(), with_whole_steps, delta_product, delta_product_definition),
      declared(scan_cases(), make_scan, selective_scan, selective_scan_definition),
      declared(heads_cases<HeadsCase>(), make_gla, gated_linear_attention,
               gated_linear_attention_definition),
      declared(heads_cases<HeadsCase>(), make_rwkv7, rwkv7, rwkv7_definition),
      declared(slstm_cases(), make_slstm, slstm, slstm_definition),
      declared(mlstm_cases(), make_mlstm, mlstm, mlstm_definition),
      declared(heads_cases<TitansCase>(), make_titans, titans, titans_definition),
      declared(ttt_cases(), make_ttt, ttt, ttt_definition),
      declared(short_conv_cases(), make_short_conv, short_conv, short_conv_definition),
      op_of("unit_conv", true, unit_conv_cases(), unit_conv_problem),
      declared(rows, make_rms_norm, rms<rms_norm>, rms<rms_norm_definition>, false),
      declared(rows, make_l2_norm, l2<l2_norm>, l2<l2_norm_definition>, false),
      op_of("add_norm", false, rows, add_norm_problem),
      declared(rows, make_swiglu, two<swiglu>, two<swiglu_definition>, false),
      declared(rows, make_swiglu_halves, halves<swiglu>, halves<swiglu_definition>, false),
      op_of("gated_mlp", false, gated_mlp_cases(), gated_mlp_problem),
      declared(rows, make_wide_sigmoid, sigmoid_of<wide_sigmoid>,
               sigmoid_of<wide_sigmoid_definition>, false),
      op_of("block_linear", false, block_linear_cases(), block_linear_problem),
      op_of("few_linear", false, few_linear_cases(), few_linear_problem),
      declared(linear_cross_entropy_cases(), make_linear_cross_entropy, linear_cross_entropy,
               linear_cross_entropy_definition, false),
      op_of("take", false, take_cases(), take_problem),
  };
}

Agreement agreement(const Problem& problem, torch::Device device, double floor) {
  const Tensors want = everything(in_double(problem.in), problem.definition),
                got = everything(moved(problem.in, device), problem.kernel);
  return {worst(got, want, false, 0), worst(got, want, true, floor)};
}

}  // namespace lrnn::ops
