#include <cmath>
#include <functional>

#include "base/error.h"
#include "bench/cuda/timing.h"
#include "ops/block_linear/block_linear.h"
#include "ops/gated_linear_attention/gated_linear_attention.h"
#include "ops/mlstm/mlstm.h"
#include "ops/norm/norm.h"
#include "ops/rwkv7/rwkv7.h"
#include "ops/selective_scan/selective_scan.h"
#include "ops/slstm/slstm.h"
#include "ops/swiglu/swiglu.h"
#include "ops/take/take.h"

// The other ops on the GPU, one JSON line per op and shape. First a short problem against the
// definition in float64 (the largest relative error of the output and the gradients; beyond 5 % it
// is not timed and the exit code is 1), then median milliseconds of replayed graphs, which also
// shows that every op can be recorded. Forward alone keeps nothing for backward; backward is what
// forward with backward takes more than a forward that keeps what backward needs.
namespace lrnn::bench {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;
using Op = std::function<Tensor(const Tensors&)>;

auto on(torch::Dtype dtype) { return torch::TensorOptions(torch::kCUDA).dtype(dtype); }

Tensor normal(std::vector<int64_t> sizes, torch::Dtype dtype) {
  return torch::randn(sizes, on(torch::kFloat32)).to(dtype);
}
const char* name_of(torch::Dtype dtype) { return dtype == torch::kBFloat16 ? " bf16" : " fp32"; }
Tensor unit(const Tensor& x) { return x / x.norm(2, -1, true); }

struct Problem {
  std::string op, shape;
  Tensors little, inputs;  // to agree on, to time
  Op kernel, definition;
  double flops = 0;  // of forward, by the recurrence; backward is counted as two of them
};

// y and the gradients of the floating-point inputs.
Tensors with_gradients(const Op& op, const Tensors& inputs, const Tensor& dy) {
  Tensors x = inputs, wanted;
  for (Tensor& t : x)
    if (t.is_floating_point()) wanted.push_back(t = t.detach().requires_grad_());
  const Tensor y = op(x);
  Tensors out = torch::autograd::grad({y}, wanted, {dy.to(y.scalar_type())});
  out.insert(out.begin(), y.detach());
  return out;
}

double largest_error(const Problem& p) {
  Tensors wide = p.little;
  for (Tensor& x : wide)
    if (x.is_floating_point()) x = x.to(torch::kFloat64);
  const Tensor dy = torch::randn_like(p.kernel(p.little));
  const auto want = with_gradients(p.definition, wide, dy),
             got = with_gradients(p.kernel, p.little, dy);
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = (got[i].to(torch::kFloat64) - want[i]).norm().item<double>() /
                         (want[i].norm().item<double>() + 1e-30);
    largest = std::isfinite(error) ? std::max(largest, error) : 1e30;
  }
  return largest;
}

double bytes_of(const Tensors& all) {
  double bytes = 0;
  for (const Tensor& x : all) bytes += double(x.nbytes());
  return bytes;
}

bool run(const Problem& p, const Ceilings& ceilings) {
  Json line = {{"op", p.op}, {"shape", p.shape}, {"error", largest_error(p)}};
  if (line["error"] > 0.05) return line["disagrees"] = "with the definition", print(line), false;
  Tensor y;
  {
    const torch::NoGradGuard no_grad;
    y = p.kernel(p.inputs);
  }
  const Tensor dy = torch::randn_like(y);
  const auto forward = [&] {
    const torch::NoGradGuard no_grad;
    p.kernel(p.inputs);
  };
  Tensors leaves = p.inputs;
  double gradients = 0;
  for (Tensor& x : leaves)
    if (x.is_floating_point()) x = x.detach().requires_grad_(), gradients += double(x.nbytes());
  const auto both = [&] { with_gradients(p.kernel, p.inputs, dy); };
  const Cost cost{bytes_of(p.inputs) + double(y.nbytes()), p.flops};
  const Cost all{2 * cost.bytes + gradients, 3 * p.flops};
  const double keeping_ms = graph_time_of([&] { p.kernel(leaves); }, 15),
               both_ms = graph_time_of(both, 15);
  line["forward"] = ceilings.rates(graph_time_of(forward), cost);
  line["both"] = ceilings.rates(both_ms, all);
  line["keeping_ms"] = keeping_ms, line["backward_ms"] = both_ms - keeping_ms;
  line["peak_mib"] = peak_mib(both, bytes_of(p.inputs) + double(dy.nbytes()));
  print(line);
  return true;
}

constexpr int64_t kLittleBatch = 2, kLittleTime = 70;

Problem scan(int64_t B, int64_t T, int64_t D, int64_t N, bool gate, bool negative) {
  const auto inputs = [=](int64_t b, int64_t t) {
    const auto dtype = torch::kBFloat16;
    Tensors in = {normal({b, t, D}, dtype),
                  normal({b, t, D}, dtype),
                  -(2 * torch::rand({D, N}, on(torch::kFloat32))).exp(),
                  normal({b, t, N}, dtype),
                  normal({b, t, N}, dtype),
                  normal({D}, torch::kFloat32),
                  normal({D}, torch::kFloat32)};
    if (gate) in.push_back(normal({b, t, D}, dtype));
    return in;
  };
  const auto by = [=](auto function) -> Op {
    return [=](const Tensors& x) {
      ops::SelectiveScan s;
      s.u = x[0], s.delta = x[1], s.A = x[2], s.B = x[3], s.C = x[4], s.D = x[5];
      s.delta_bias = x[6], s.negative = negative;
      if (gate) s.z = x[7];
      return function(s).y;
    };
  };
  return {"selective_scan",
          cat(B, ",", T, ",", D, ",", N, gate ? " z" : "", negative ? " [-1,1]" : ""),
          inputs(kLittleBatch, kLittleTime),
          inputs(B, T),
          by(ops::selective_scan),
          by(ops::selective_scan_definition),
          7.0 * double(B * T * D * N)};
}

Problem attention(int64_t B, int64_t T, int64_t H, int64_t K, int64_t V) {
  const auto inputs = [=](int64_t b, int64_t t) -> Tensors {
    const auto dtype = torch::kBFloat16;
    return {normal({b, t, H, K}, dtype), normal({b, t, H, K}, dtype), normal({b, t, H, V}, dtype),
            -0.5 * torch::rand({b, t, H, K}, on(torch::kFloat32))};
  };
  const auto by = [](auto function) -> Op {
    return [=](const Tensors& x) {
      ops::GatedLinearAttention in;
      in.q = x[0], in.k = x[1], in.v = x[2], in.log_gate = x[3];
      return function(in).o;
    };
  };
  return {"gated_linear_attention",          cat(B, ",", T, ",", H, ",", K, ",", V),
          inputs(kLittleBatch, kLittleTime), inputs(B, T),
          by(ops::gated_linear_attention),   by(ops::gated_linear_attention_definition),
          5.0 * double(B * T * H * K * V)};
}

Problem rwkv7(int64_t B, int64_t T, int64_t H, int64_t K, int64_t V) {
  const auto inputs = [=](int64_t b, int64_t t) -> Tensors {
    const auto dtype = torch::kBFloat16;
    return {normal({b, t, H, K}, dtype),
            -0.5 * torch::rand({b, t, H, K}, on(torch::kFloat32)),
            normal({b, t, H, K}, dtype),
            normal({b, t, H, V}, dtype),
            unit(normal({b, t, H, K}, torch::kFloat32)).to(dtype),
            torch::rand({b, t, H, K}, on(torch::kFloat32)).to(dtype)};
  };
  const auto by = [](auto function) -> Op {
    return [=](const Tensors& x) {
      ops::Rwkv7 in;
      in.r = x[0], in.log_w = x[1], in.k = x[2], in.v = x[3], in.kk = x[4], in.a = x[5];
      return function(in).o;
    };
  };
  return {"rwkv7",
          cat(B, ",", T, ",", H, ",", K, ",", V),
          inputs(kLittleBatch, kLittleTime),
          inputs(B, T),
          by(ops::rwkv7),
          by(ops::rwkv7_definition),
          9.0 * double(B * T * H * K * V)};
}

Problem slstm(int64_t B, int64_t T, int64_t H, int64_t D) {
  const auto inputs = [=](int64_t b, int64_t t) -> Tensors {
    return {normal({b, t, H, 4, D}, torch::kBFloat16),
            normal({H, D, 4, D}, torch::kFloat32) / double(D), normal({H, 4, D}, torch::kFloat32)};
  };
  const auto by = [](auto function) -> Op {
    return [=](const Tensors& x) {
      ops::Slstm in;
      in.wx = x[0], in.R = x[1], in.bias = x[2];
      return function(in).h;
    };
  };
  return {"slstm",
          cat(B, ",", T, ",", H, ",", D),
          inputs(kLittleBatch, kLittleTime),
          inputs(B, T),
          by(ops::slstm),
          by(ops::slstm_definition),
          8.0 * double(B * T * H * D * D)};
}

Problem mlstm(int64_t B, int64_t T, int64_t H, int64_t D, torch::Dtype dtype) {
  const auto inputs = [=](int64_t b, int64_t t) -> Tensors {
    return {normal({b, t, H, D}, dtype), normal({b, t, H, D}, dtype), normal({b, t, H, D}, dtype),
            normal({b, t, H}, torch::kFloat32), normal({b, t, H}, torch::kFloat32) + 4};
  };
  const auto by = [](auto function) -> Op {
    return [=](const Tensors& x) {
      ops::Mlstm in;
      in.q = x[0], in.k = x[1], in.v = x[2], in.i = x[3], in.f = x[4];
      return function(in).h;
    };
  };
  return {"mlstm",
          cat(B, ",", T, ",", H, ",", D, name_of(dtype)),
          inputs(kLittleBatch, kLittleTime),
          inputs(B, T),
          by(ops::mlstm),
          by(ops::mlstm_definition),
          5.0 * double(B * T * H * D * D)};
}

constexpr int64_t kLittleRows = 300;

Problem block_linear(int64_t n, int64_t count, int64_t side, torch::Dtype dtype) {
  const auto inputs = [=](int64_t rows) -> Tensors {
    return {normal({rows, count * side}, dtype), normal({count, side, side}, dtype)};
  };
  return {"block_linear",
          cat(n, ",", count, ",", side, name_of(dtype)),
          inputs(kLittleRows),
          inputs(n),
          [](const Tensors& x) { return ops::block_linear(x[0], x[1]); },
          [](const Tensors& x) { return ops::block_linear_definition(x[0], x[1]); },
          2.0 * double(n * count * side * side)};
}

Problem rms_norm(int64_t n, int64_t D, torch::Dtype dtype) {
  const auto inputs = [=](int64_t rows) -> Tensors {
    return {normal({rows, D}, dtype), normal({D}, torch::kFloat32)};
  };
  return {"rms_norm",
          cat(n, ",", D, name_of(dtype)),
          inputs(kLittleRows),
          inputs(n),
          [](const Tensors& x) { return ops::rms_norm(x[0], x[1], 1e-6); },
          [](const Tensors& x) { return ops::rms_norm_definition(x[0], x[1], 1e-6); },
          4.0 * double(n * D)};
}

Problem l2_norm(int64_t n, int64_t D, torch::Dtype dtype) {
  return {"l2_norm",
          cat(n, ",", D, name_of(dtype)),
          {normal({kLittleRows, D}, dtype)},
          {normal({n, D}, dtype)},
          [](const Tensors& x) { return ops::l2_norm(x[0], 1e-6); },
          [](const Tensors& x) { return ops::l2_norm_definition(x[0], 1e-6); },
          3.0 * double(n * D)};
}

Problem swiglu(int64_t n, int64_t D, torch::Dtype dtype) {
  const auto inputs = [=](int64_t rows) -> Tensors {
    return {normal({rows, D}, dtype), normal({rows, D}, dtype)};
  };
  return {"swiglu",
          cat(n, ",", D, name_of(dtype)),
          inputs(kLittleRows),
          inputs(n),
          [](const Tensors& x) { return ops::swiglu(x[0], x[1]); },
          [](const Tensors& x) { return ops::swiglu_definition(x[0], x[1]); },
          5.0 * double(n * D)};
}

Problem take(int64_t n, int64_t D, torch::Dtype dtype, int64_t table) {
  const auto inputs = [=](int64_t rows) -> Tensors {
    return {normal({table, D}, dtype), torch::randint(table, {rows}, on(torch::kInt64))};
  };
  return {"take",
          cat(n, ",", D, name_of(dtype), " of ", table),
          inputs(kLittleRows),
          inputs(n),
          [](const Tensors& x) { return ops::take({x[0]}, x[1])[0]; },
          [](const Tensors& x) { return x[0].index_select(0, x[1]); }};
}

}  // namespace
}  // namespace lrnn::bench

// With an argument: the ops whose name contains it.
int main(int argc, char** argv) {
  using namespace lrnn::bench;
  if (!has_gpu()) return 0;
  const std::string only = argc > 1 ? argv[1] : "";
  torch::manual_seed(1);
  const auto ceilings = Ceilings::measure();
  print(ceilings.json());
  bool good = true;
  const auto with = [&](const std::string& op, auto make, auto... sizes) {
    if (op.find(only) != std::string::npos) good &= run(make(sizes...), ceilings);
  };
  const auto bf16 = torch::kBFloat16, fp32 = torch::kFloat32;
  with("selective_scan", scan, 8, 2048, 4096, 16, false, false);
  with("selective_scan", scan, 8, 2048, 4096, 16, true, false);
  with("selective_scan", scan, 8, 2048, 4096, 16, true, true);
  with("selective_scan", scan, 256, 64, 256, 16, true, true);
  with("gated_linear_attention", attention, 8, 2048, 16, 64, 64);
  with("gated_linear_attention", attention, 8, 2048, 8, 128, 128);
  with("gated_linear_attention", attention, 256, 64, 4, 16, 32);
  with("rwkv7", rwkv7, 8, 2048, 16, 64, 64);
  with("rwkv7", rwkv7, 256, 64, 4, 32, 32);
  with("slstm", slstm, 8, 1024, 4, 64);
  with("slstm", slstm, 256, 64, 4, 32);
  with("mlstm", mlstm, 8, 1024, 4, 64, bf16);
  with("mlstm", mlstm, 256, 64, 4, 32, bf16);
  with("mlstm", mlstm, 256, 40, 4, 64, bf16);
  with("mlstm", mlstm, 256, 40, 4, 64, fp32);
  for (const auto dtype : {fp32, bf16}) with("block_linear", block_linear, 10240, 64, 4, dtype);
  for (const auto& [n, D, dtype] : {std::tuple{65536, 1024, bf16}, {16384, 128, fp32}}) {
    with("rms_norm", rms_norm, n, D, dtype);
    with("l2_norm", l2_norm, n, D, dtype);
    with("swiglu", swiglu, n, D, dtype);
    for (const int64_t table : {8, 4096}) with("take", take, n, D, dtype, table);
  }
  return good ? 0 : 1;
}
