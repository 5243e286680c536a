#include "mixers/delta_product.h"

#include <cmath>

#include "mixers/initial.h"
#include "ops/cast_weights/cast_weights.h"
#include "ops/delta_product/delta_product.h"
#include "ops/join/join.h"
#include "ops/linears/linears.h"
#include "ops/norm/norm.h"
#include "ops/short_conv/short_conv.h"
#include "ops/swiglu/swiglu.h"
#include "ops/take/take.h"
#include "ops/unit_conv/unit_conv.h"
#include "ops/wide_sigmoid/wide_sigmoid.h"

namespace lrnn::mixers {
namespace {

constexpr double kNormEps = 1e-6;  // of q and k; fla has no switch for it either

// Channels are ordered (n h d): householder first, as in fla's checkpoints.
class DeltaProduct final : public Mixer {
 public:
  DeltaProduct(int64_t width, const DeltaProductConfig& c) : c_(c) {
    const int64_t N = c.householders, H = c.heads, K = c.key_dim, V = c.value();
    q_proj_ = add<Linear>("q_proj", width, H * K);
    k_proj_ = add<Linear>("k_proj", width, N * H * K);
    v_proj_ = add<Linear>("v_proj", width, N * H * V);
    if (c.beta) b_proj_ = add<Linear>("b_proj", width, N * H);
    if (c.forget_gate) {
      a_proj_ = add<Linear>("a_proj", width, H);
      A_log_ = register_parameter("A_log", torch::empty(H));
      dt_bias_ = register_parameter("dt_bias", torch::empty(H));
    }
    if (c.conv > 0) {
      q_conv_ = add<ShortConv>("q_conv1d", H * K, c.conv);
      k_conv_ = add<ShortConv>("k_conv1d", N * H * K, c.conv);
      v_conv_ = add<ShortConv>("v_conv1d", N * H * V, c.conv);
    }
    if (c.output_gate) g_proj_ = add<Linear>("g_proj", width, H * V);
    if (c.initial_state)
      initial_state_ = register_parameter("initial_state", torch::empty({H, K, V}));
    o_norm_ = add<RmsNorm>("o_norm", V, c.norm_eps);
    o_proj_ = add<Linear>("o_proj", H * V, width);
  }

  Tensor mix(const Rows& x, State& state, const Context& context) override {
    if (state.empty()) state.resize(c_.conv > 0 ? 4 : 1);
    check(state.size() == (c_.conv > 0 ? 4u : 1u), "delta_product: the state has ", state.size(),
          " tensors, not ", c_.conv > 0 ? 4 : 1);
    // At the ends of sequences q and the gate are made there alone; other rows are picked from all.
    const bool ends = context.reads_ends(x.batch(), x.length());
    Inputs in = inputs(x, state, context, ends);
    if (ends) in.q = query_at_ends(x, state, context);
    const Tensor o = recur(in, state, context);
    if (ends && c_.output_gate)
      in.gate = x.through(*g_proj_, context.read_at.unsqueeze(0));
    else if (in.gate.defined())
      in.gate = Rows{in.gate, {}}.at(context.read_at);
    return output(o, in.gate);
  }
  bool picks_rows() const override { return true; }

  void initialise(const Init& init) override;
  std::vector<std::string> undecayed() const override {
    std::vector<std::string> out;
    if (c_.forget_gate) out = {"A_log", "dt_bias"};
    if (c_.initial_state) out.emplace_back("initial_state");
    return out;
  }
  bool reads_products() const override { return true; }
  int64_t state_size() const override {
    const int64_t N = c_.householders, H = c_.heads, K = c_.key_dim, V = c_.value();
    return H * K * V + c_.conv * H * (K + N * K + N * V);
  }

 private:
  // What acts on the state and, unless only the end is wanted, what reads it.
  struct Inputs {
    Tensor q, gate, k, v, beta, log_gate;
  };

  template <class Module, class... Sizes>
  std::shared_ptr<Module> add(const char* name, Sizes... sizes) {
    return register_module(name, std::make_shared<Module>(sizes...));
  }

  // The convolution has the SiLU inside.
  static Tensor convolve(const Tensor& y, const ShortConv& conv, Tensor& state,
                         const std::string& activation, const Tensor& cu_seqlens) {
    return after(conv.forward(y, state, activation == "silu", cu_seqlens), activation);
  }
  static Tensor activate(const Tensor& y, const std::string& activation) {
    return activation == "silu" ? torch::silu(y) : after(y, activation);
  }
  static Tensor after(const Tensor& y, const std::string& activation) {
    if (activation == "relu") return torch::relu(y);
    if (activation == "elu") return torch::elu(y) + 1;
    return y;
  }
  // The step sizes. The recurrence wants them in float32, which on a GPU saves it a pass.
  static Tensor step_sizes(const Tensor& y, double largest) {
    return y.is_cuda() ? ops::wide_sigmoid(y, largest) : scaled_sigmoid(y, largest);
  }
  Tensor normalise(const Tensor& y) const {
    if (c_.qk_norm == "l2") return ops::l2_norm(y, kNormEps);
    if (c_.qk_norm == "sum") return (y / y.sum(-1, true)).to(y.scalar_type());
    return y;
  }

  // Without a convolution every input is a function of the token alone where x is: the table is
  // then looked up at the very end.
  Inputs inputs(const Rows& x, State& state, const Context& context, bool ends) const {
    const bool conv = c_.conv > 0;
    const int64_t N = c_.householders, H = c_.heads, K = c_.key_dim;
    Inputs in = project(x, !ends);
    if (x.token.defined() && conv) look_up(in, x.token);
    if (conv && together(in)) {
      convolve_together(in, state, context);
    } else if (conv) {
      const auto& cu = context.cu_seqlens;
      const int64_t B = x.batch(), T = x.length();
      if (in.q.defined())
        in.q = convolve(in.q, *q_conv_, state[1], c_.qk_activation, cu).view({B, T, H, K});
      in.k = convolve(in.k, *k_conv_, state[2], c_.qk_activation, cu).view({B, T, N, H, K});
      in.v = convolve(in.v, *v_conv_, state[3], c_.v_activation, cu).view({B, T, N, H, c_.value()});
    } else {
      if (in.q.defined()) in.q = activate(in.q, c_.qk_activation);
      in.k = activate(in.k, c_.qk_activation);
      in.v = activate(in.v, c_.v_activation);
    }
    if (!conv || !together(in)) {
      if (in.q.defined()) in.q = normalise(in.q);
      in.k = normalise(in.k);
    }
    const double largest = c_.negative() ? 2 : 1;
    in.beta = c_.beta ? step_sizes(in.beta, largest)
                      : torch::full(in.k.sizes().slice(0, in.k.dim() - 1), largest,
                                    in.k.options().requires_grad(false));
    // The logarithm of a gate near 1 needs more digits than bfloat16 has.
    if (c_.forget_gate)
      in.log_gate =
          -A_log_.exp() * torch::softplus(in.log_gate.to(A_log_.scalar_type()) + dt_bias_);
    if (x.token.defined() && !conv) look_up(in, x.token);
    if (context.observe) {
      context.observe("k", in.k);
      context.observe("v", in.v);
      context.observe("beta", in.beta);
      if (c_.forget_gate) context.observe("log_gate", in.log_gate);
    }
    return in;
  }

  // On a GPU q, k and v are the columns of one product and take the same way: one convolution and
  // one norm instead of three and two, and where they can be one pass, that.
  bool together(const Inputs& in) const {
    return in.q.defined() && in.q.is_cuda() && c_.qk_activation == "silu" &&
           c_.v_activation == "silu";
  }
  void convolve_together(Inputs& in, State& state, const Context& context) const {
    const int64_t N = c_.householders, H = c_.heads, K = c_.key_dim, V = c_.value();
    const int64_t B = in.q.size(0), T = in.q.size(1);
    const auto dtype = in.q.scalar_type();
    const std::vector<int64_t> sizes = {H * K, N * H * K, N * H * V};
    const Tensor x = ops::join({in.q, in.k, in.v}, 2);
    const Tensor weight =
        ops::join({ops::weight_in(q_conv_->weight, dtype), ops::weight_in(k_conv_->weight, dtype),
                   ops::weight_in(v_conv_->weight, dtype)},
                  0);
    const Tensor before =
        state[1].defined() ? ops::join({state[1], state[2], state[3]}, 1) : Tensor();
    Tensor after;
    if (c_.qk_norm == "l2" && !context.cu_seqlens.defined() &&
        !(before.defined() && before.requires_grad())) {
      const auto out = ops::unit_conv({.x = x,
                                       .weight = weight,
                                       .state = before,
                                       .sizes = sizes,
                                       .units = (1 + N) * H * K,
                                       .group = K,
                                       .eps = kNormEps});
      after = out.state;
      in.q = out.y[0].view({B, T, H, K}), in.k = out.y[1].view({B, T, N, H, K});
      in.v = out.y[2].view({B, T, N, H, V});
    } else {
      const auto out = ops::short_conv({.x = x,
                                        .weight = weight,
                                        .bias = {},
                                        .state = before,
                                        .silu = true,
                                        .cu_seqlens = context.cu_seqlens});
      after = out.state;
      const auto y = ops::split(out.y, {(1 + N) * H * K, N * H * V}, 2);
      const Tensor normed = normalise(y[0].view({B, T, (1 + N) * H, K}));
      const auto qk = ops::split(normed, {H, N * H}, 2);
      in.q = qk[0], in.k = qk[1].view({B, T, N, H, K}), in.v = y[1].view({B, T, N, H, V});
    }
    const auto states = ops::split(after, sizes, 1);
    for (size_t i = 0; i < states.size(); ++i) state[1 + i] = states[i];
  }

  // Every product with x, at all positions; q and the gate only where they are wanted there. What
  // a convolution reads keeps its channels in one dimension.
  Inputs project(const Rows& x, bool everywhere) const {
    const int64_t N = c_.householders, H = c_.heads, K = c_.key_dim, V = c_.value();
    Inputs in;
    std::vector<Tensor> weights;
    std::vector<Tensor*> to;
    ops::Shapes shapes;
    const auto want = [&](Tensor& y, const std::shared_ptr<Linear>& projection, bool flat,
                          std::initializer_list<int64_t> divided) {
      if (!projection) return;
      weights.push_back(projection->weight), to.push_back(&y);
      shapes.push_back(x.x.sizes().vec());
      shapes.back().back() = projection->weight.size(0);
      if (flat) return;
      shapes.back().pop_back();
      shapes.back().insert(shapes.back().end(), divided);
    };
    const bool conv = c_.conv > 0;
    if (everywhere) want(in.q, q_proj_, conv, {H, K}), want(in.gate, g_proj_, true, {});
    want(in.k, k_proj_, conv, {N, H, K}), want(in.v, v_proj_, conv, {N, H, V});
    want(in.beta, b_proj_, false, {N, H}), want(in.log_gate, a_proj_, true, {});
    const auto products = ops::linears(x.x, std::move(weights), shapes);
    for (size_t i = 0; i < to.size(); ++i) *to[i] = products[i];
    return in;
  }

  static void look_up(Inputs& in, const Tensor& token) {
    std::vector<Tensor> tables;
    std::vector<Tensor*> to;
    for (Tensor* y : {&in.q, &in.gate, &in.k, &in.v, &in.beta, &in.log_gate})
      if (y->defined()) tables.push_back(*y), to.push_back(y);
    const auto rows = ops::take(tables, token);
    for (size_t i = 0; i < to.size(); ++i) *to[i] = rows[i];
  }

  // The state that the first token finds.
  Tensor before(const Inputs& in, const State& state, const Context& context) const {
    if (state[0].defined() || !c_.initial_state) return state[0];
    const auto& cu = context.cu_seqlens;
    const int64_t sequences = cu.defined() ? cu.size(0) - 1 : in.k.size(0);
    return initial_state_.unsqueeze(0).expand({sequences, -1, -1, -1});
  }

  Tensor recur(const Inputs& in, State& state, const Context& context) const {
    auto out = ops::delta_product(
        {.q = in.q,
         .k = in.k,
         .v = in.v,
         .beta = in.beta,
         .log_gate = in.log_gate,
         .state = before(in, state, context),
         .scale = {},
         .cu_seqlens = context.cu_seqlens,
         .accuracy = context.accuracy.empty() ? c_.asked_accuracy() : context.accuracy,
         .read_at = context.read_at});
    state[0] = out.state;
    return out.o;
  }

  // [1,S,H,K]
  Tensor query_at_ends(const Rows& x, State& state, const Context& context) const {
    const auto& activation = c_.qk_activation;
    const Tensor q =
        q_conv_
            ? after(q_conv_->ends(x, *q_proj_, state[1], activation == "silu", context), activation)
            : activate(x.through(*q_proj_, context.read_at.unsqueeze(0)), activation);
    return normalise(q.view({1, -1, c_.heads, c_.key_dim}));
  }

  // o [..,H,V], gate [..,H*V] or undefined
  Tensor output(const Tensor& o, const Tensor& gate) const {
    Tensor y = o_norm_->forward(o);
    std::vector<int64_t> shape = o.sizes().vec();
    shape.pop_back();
    if (gate.defined()) y = ops::swiglu(gate, y.view(gate.sizes()));
    shape.back() = o_proj_->weight.size(0);
    return ops::linears(y, {o_proj_->weight}, {shape})[0];
  }

  DeltaProductConfig c_;
  std::shared_ptr<Linear> q_proj_, k_proj_, v_proj_, b_proj_, a_proj_, g_proj_, o_proj_;
  std::shared_ptr<ShortConv> q_conv_, k_conv_, v_conv_;
  std::shared_ptr<RmsNorm> o_norm_;
  Tensor A_log_, dt_bias_, initial_state_;
};

void DeltaProduct::initialise(const Init& init) {
  const torch::NoGradGuard no_grad;
  const bool fla = init.scheme == "fla";
  for (const auto& item : named_parameters()) {
    const auto& name = item.key();
    Tensor w = item.value();
    if (name == "o_norm.weight") {
      w.fill_(1);
    } else if (name == "initial_state") {
      w.zero_();
    } else if (name == "A_log") {
      fill_uniform(w, init.seed, name, 0, 16);
      w.log_();
    } else if (name == "dt_bias") {
      fill_inverse_softplus(w, init.seed, name);
    } else if (fla) {
      fill_normal(w, init.seed, name, init.std);
    } else {
      const double bound = w.dim() == 3
                               ? 1 / std::sqrt(double(w.size(2)))
                               : init.gain * std::sqrt(6.0 / double(w.size(0) + w.size(1)));
      fill_uniform(w, init.seed, name, -bound, bound);
    }
  }
}

}  // namespace

MixerPtr make_delta_product(int64_t width, const DeltaProductConfig& config) {
  return std::make_shared<DeltaProduct>(width, config);
}

Entry entry_delta_product(const char* name, const char* about) {
  return entry<DeltaProduct, DeltaProductConfig>(name, about);
}

}  // namespace lrnn::mixers
