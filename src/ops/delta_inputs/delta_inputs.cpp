#include "ops/delta_inputs/delta_inputs.h"

#include "ops/join/join.h"
#include "ops/norm/norm.h"
#include "ops/short_conv/short_conv.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

using torch::Tensor;

constexpr double kEps = 1e-6;  // fla has no switch for it either
enum { kQ, kK, kV };

Tensor activate(const Tensor& y, const std::string& activation) {
  if (activation == "silu") return torch::silu(y);
  if (activation == "relu") return torch::relu(y);
  if (activation == "elu") return torch::elu(y) + 1;
  return y;
}

Tensor normalise(const Tensor& y, const std::string& norm) {
  if (norm == "l2") return l2_norm(y, kEps);
  if (norm == "sum") return (y / y.sum(-1, true)).to(y.scalar_type());
  return y;
}

std::vector<int64_t> sizes_of(const DeltaInputs& in) {
  return {in.H * in.K, in.N * in.H * in.K, in.N * in.H * in.V};
}

// [..,n] as [..,last].
Tensor divided(const Tensor& y, at::IntArrayRef last) {
  auto shape = y.sizes().vec();
  shape.pop_back();
  shape.insert(shape.end(), last.begin(), last.end());
  return y.view(shape);
}
void divide(const DeltaInputs& in, Tensor& q, Tensor& k, Tensor& v) {
  q = divided(q, {in.H, in.K});
  k = divided(k, {in.N, in.H, in.K}), v = divided(v, {in.N, in.H, in.V});
}

DeltaInputs apart(const DeltaInputs& given) {
  DeltaInputs in = given;
  if (!in.qkv.defined()) return in;
  const auto parts = ops::split(in.qkv, sizes_of(in), -1);
  in.q = parts[kQ], in.k = parts[kK], in.v = parts[kV];
  if (in.conv.parts.empty()) divide(in, in.q, in.k, in.v);
  return in;
}

// One of the three through its convolution, which has the SiLU inside, and its activation.
Tensor convolved(const DeltaInputs& in, const Tensor& x, int which, Tensor& state) {
  const std::string& activation = which == kV ? in.v_activation : in.qk_activation;
  if (in.conv.parts.empty()) return activate(x, activation);
  const bool silu = activation == "silu";
  ShortConv conv{.x = x,
                 .weight = in.conv.parts.at(size_t(which)).in(x.scalar_type()),
                 .bias = {},
                 .state = state,
                 .silu = silu,
                 .cu_seqlens = in.cu_seqlens};
  if (which == kQ && in.lengths.defined()) conv.cu_seqlens.reset();
  const auto out =
      which == kQ && in.lengths.defined() ? short_conv_ends(conv, in.lengths) : short_conv(conv);
  state = out.state;
  return silu ? out.y : activate(out.y, activation);
}

DeltaInputsResult one_by_one(const DeltaInputs& in) {
  DeltaInputsResult out;
  out.states = in.states;
  out.states.resize(3);
  out.q = convolved(in, in.q, kQ, out.states[kQ]);
  out.k = convolved(in, in.k, kK, out.states[kK]);
  out.v = convolved(in, in.v, kV, out.states[kV]);
  if (!in.conv.parts.empty()) divide(in, out.q, out.k, out.v);
  out.q = normalise(out.q, in.qk_norm), out.k = normalise(out.k, in.qk_norm);
  return out;
}

// States that an earlier call left as pieces of one tensor [B,C,W], as that one again; else a copy.
Tensor rejoined(const std::vector<Tensor>& states) {
  const Tensor& first = states.at(0);
  if (!first.has_storage()) return torch::cat(states, 1);
  auto sizes = first.sizes().vec();
  int64_t at = first.storage_offset();
  bool one = true;
  for (const Tensor& x : states) {
    one = one && !x.requires_grad() && x.has_storage() &&
          x.storage().is_alias_of(first.storage()) && x.strides() == first.strides() &&
          x.scalar_type() == first.scalar_type() && x.storage_offset() == at &&
          x.size(0) == sizes[0] && x.size(2) == sizes[2];
    at += x.size(1) * x.stride(1);
  }
  if (!one) return torch::cat(states, 1);
  sizes[1] = 0;
  for (const Tensor& x : states) sizes[1] += x.size(1);
  return first.as_strided(sizes, first.strides(), first.storage_offset());
}

// The channels of q, k and v as those of one convolution.
DeltaInputsResult together(const DeltaInputs& in) {
  const int64_t N = in.N, H = in.H, K = in.K, V = in.V;
  const Tensor x = in.qkv.defined() ? in.qkv : torch::cat({in.q, in.k, in.v}, -1);
  const int64_t B = x.size(0), T = x.size(1);
  const Tensor weight = join(in.conv.in(x.scalar_type()));
  const bool first = in.states.empty() || !in.states[0].defined();
  const Tensor before = first ? Tensor() : rejoined(in.states);
  const auto sizes = sizes_of(in);
  DeltaInputsResult out;
  Tensor after;
  if (in.qk_norm == "l2" && !in.cu_seqlens.defined() && (first || !before.requires_grad())) {
    const auto made = unit_conv({.x = x,
                                 .weight = weight,
                                 .state = before,
                                 .sizes = sizes,
                                 .units = (1 + N) * H * K,
                                 .group = K,
                                 .eps = kEps});
    out.q = made.y[kQ].view({B, T, H, K}), out.k = made.y[kK].view({B, T, N, H, K});
    out.v = made.y[kV].view({B, T, N, H, V});
    after = made.state;
  } else {
    const auto made = short_conv({.x = x,
                                  .weight = weight,
                                  .bias = {},
                                  .state = before,
                                  .silu = true,
                                  .cu_seqlens = in.cu_seqlens});
    const auto y = ops::split(made.y, {(1 + N) * H * K, N * H * V}, 2);
    const Tensor units = normalise(y[0].view({B, T, (1 + N) * H, K}), in.qk_norm);
    const auto qk = ops::split(units, {H, N * H}, 2);
    out.q = qk[0], out.k = qk[1].view({B, T, N, H, K}), out.v = y[1].view({B, T, N, H, V});
    after = made.state;
  }
  out.states = ops::split(after, sizes, 1);
  return out;
}

}  // namespace

DeltaInputsResult delta_inputs(const DeltaInputs& in) {
  const bool one = !in.conv.parts.empty() && !in.lengths.defined() && in.qk_activation == "silu" &&
                   in.v_activation == "silu" && (in.qkv.defined() || in.k.is_cuda());
  return one ? together(in) : one_by_one(apart(in));
}

DeltaInputsResult delta_inputs_definition(const DeltaInputs& given) {
  const DeltaInputs in = apart(given);
  DeltaInputsResult out;
  out.states = in.states;
  out.states.resize(3);
  const auto through = [&](Tensor y, int which, const std::string& activation) {
    Tensor& state = out.states[size_t(which)];
    const bool ends = which == kQ && in.lengths.defined();
    if (!in.conv.parts.empty()) {
      const ShortConv conv{.x = y,
                           .weight = in.conv.parts.at(size_t(which)).value.to(y.scalar_type()),
                           .bias = {},
                           .state = state,
                           .silu = false,
                           .cu_seqlens = ends ? Tensor() : in.cu_seqlens};
      const auto made = ends ? short_conv_ends(conv, in.lengths) : short_conv_definition(conv);
      y = made.y, state = made.state;
    }
    return activate(y, activation);
  };
  const auto unit = [&](const Tensor& y) {
    return in.qk_norm == "l2" ? l2_norm_definition(y, kEps) : normalise(y, in.qk_norm);
  };
  out.q = through(in.q, kQ, in.qk_activation), out.k = through(in.k, kK, in.qk_activation);
  out.v = through(in.v, kV, in.v_activation);
  if (!in.conv.parts.empty()) divide(in, out.q, out.k, out.v);
  out.q = unit(out.q), out.k = unit(out.k);
  return out;
}

}  // namespace lrnn::ops
