#include "ops/ttt/ttt.h"

#include <cmath>

#include "mixers/head_mixer.h"
#include "mixers/ttt_jacobian.h"

namespace lrnn::mixers {
namespace {

constexpr double kFirstWeights = 0.02;  // deviation of W before the first token, as published

struct TttConfig {
  int64_t heads = 4, head_dim = 16, mini_batch = 16, conv = 0;
  double step = 1, inner_eps = 1e-6, norm_eps = 1e-6;
  bool output_gate = false;

  template <class Visit> void fields(Visit&& visit) {
    visit("heads", heads, "independent inner models", at_least(1));
    visit("head_dim", head_dim, "channels of an inner model, whose weights are a square of them",
          at_least(3));
    visit("mini_batch", mini_batch,
          "tokens whose gradients are taken at the same weights; 1: a step after every token",
          between(1, ops::Ttt::kLongestBatch));
    visit("step", step, "the largest step of the inner model, times one over head_dim", positive());
    visit_conv(visit, conv);
    visit_output_gate(visit, output_gate);
    visit("inner_eps", inner_eps, "inside the square root of the inner model's layer norm",
          positive());
    visit("norm_eps", norm_eps, "inside the square root of the output's layer norm", positive());
  }
};

// The layer around TTT-Linear. What the inner models begin with, and their norms, are learnt.
class Ttt final : public HeadMixer {
 public:
  Ttt(int64_t width, const TttConfig& c) : c_(c) {
    W_ = register_parameter("W", torch::empty({c.heads, c.head_dim, c.head_dim}));
    b_ = register_parameter("b", torch::empty({c.heads, c.head_dim}));
    weight_ = register_parameter("ttt_norm_weight", torch::empty({c.heads, c.head_dim}));
    bias_ = register_parameter("ttt_norm_bias", torch::empty({c.heads, c.head_dim}));
    add_projections(width, c.heads, c.head_dim, c.head_dim);
    eta_proj_ = add<Linear>("eta_proj", width, c.heads, true);
    add_convolutions(c.conv);
    if (c.output_gate) add_output_gate(width);
    norm_ = add<AffineNorm>("post_norm", values_, c.norm_eps);
    add_output(width);
  }

  Tensor mix(const Rows& x, State& state, const Context& context) override {
    const bool begins = state.empty();
    fit_state(state, tensors(3), "ttt");
    if (begins) begin(x, state, context);
    const Tensor gate = output_gate(x, context);
    ops::Ttt in;
    in.q = q_.ends(x, state, 3, context);
    in.k = k_.forward(x, state, 4, context);
    in.v = v_.forward(x, state, 5, context);
    in.eta = steps(x), in.weight = weight_, in.bias = bias_;
    in.W = state[0], in.b = state[1], in.position = state[2];
    in.mini_batch = c_.mini_batch, in.eps = c_.inner_eps;
    in.cu_seqlens = context.cu_seqlens, in.read_at = context.read_at;
    if (context.observe && !context.cu_seqlens.defined())
      context.observe("jacobian", ttt_jacobian(in));
    const auto out = ops::ttt(in);
    state[0] = out.W, state[1] = out.b, state[2] = out.position;
    return output(norm_->forward(out.o.flatten(-2)), gate);
  }

  std::vector<std::string> undecayed() const override {
    return {"W", "b", "ttt_norm_weight", "ttt_norm_bias"};
  }
  int64_t state_size() const override {
    const int64_t D = c_.head_dim;
    return c_.heads * D * (2 * (D + 1) + 3 * c_.conv) + 1;
  }

 private:
  bool initialise_own(Tensor& w, const Init& init, const std::string& name) override {
    if (name == "W")
      fill_normal(w, init.seed, name, kFirstWeights);
    else if (name == "b")
      w.fill_(0);
    else if (name == "ttt_norm_weight")
      w.fill_(1);
    else
      return false;
    return true;
  }

  // Every sequence begins a mini-batch with the learnt weights.
  void begin(const Rows& x, State& state, const Context& context) const {
    const int64_t S = context.cu_seqlens.defined() ? context.cu_seqlens.size(0) - 1 : x.batch();
    const int64_t H = c_.heads, D = c_.head_dim;
    state[0] = W_.expand({S, 2, H, D, D}), state[1] = b_.expand({S, 2, H, D});
    state[2] = torch::zeros({S}, W_.options().requires_grad(false));
  }

  Tensor steps(const Rows& x) const {
    const Tensor y = wide(eta_proj_->forward(x.x)).sigmoid();
    return Rows{y * (c_.step / double(c_.head_dim)), x.token}.rows();
  }

  TttConfig c_;
  Tensor W_, b_, weight_, bias_;
  std::shared_ptr<Linear> eta_proj_;
  std::shared_ptr<AffineNorm> norm_;
};

}  // namespace

Entry entry_ttt(const char* name, const char* about) { return entry<Ttt, TttConfig>(name, about); }

}  // namespace lrnn::mixers
