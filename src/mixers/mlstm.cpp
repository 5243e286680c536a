#include "ops/mlstm/mlstm.h"

#include <cmath>

#include "mixers/fit_state.h"
#include "mixers/initial.h"
#include "mixers/mixer.h"

// The mLSTM layer of xLSTM (Beck et al. 2024): a matrix for a state, exponential gates.
namespace lrnn::mixers {
namespace {

struct MlstmConfig {
  int64_t heads = 4, conv = 4, block = 4;
  double expand = 2, norm_eps = 1e-5;

  template <class Visit> void fields(Visit&& visit) {
    visit("heads", heads, "independent states", at_least(1));
    visit("expand", expand, "inner width, in widths; rounded up to a multiple of 64", positive());
    visit("conv", conv, "kernel of the short convolution that feeds q and k", at_least(1));
    visit("block", block, "size of the blocks of the projections to q, k and v", at_least(1));
    visit("norm_eps", norm_eps, "inside the square root of the output's LayerNorm", positive());
  }
  int64_t inner(int64_t width) const {
    return static_cast<int64_t>(std::ceil(expand * double(width) / 64)) * 64;
  }
};

// The state is C, n, m and the convolution's.
class MlstmMixer final : public Mixer {
 public:
  MlstmMixer(int64_t width, const MlstmConfig& c)
      : c_(c), width_(width), inner_(c.inner(width)), H_(c.heads), D_(inner_ / c.heads) {
    x_proj_ = register_module("x_proj", std::make_shared<Linear>(width, inner_));
    z_proj_ = register_module("z_proj", std::make_shared<Linear>(width, inner_));
    conv_ = register_module("conv1d", std::make_shared<ShortConv>(inner_, c.conv, true));
    const auto blocks = [&](const char* name) {
      return register_module(name,
                             std::make_shared<BlockLinear>(inner_ / c.block, c.block, c.block));
    };
    q_proj_ = blocks("q_proj"), k_proj_ = blocks("k_proj"), v_proj_ = blocks("v_proj");
    i_gate_ = register_module("i_gate", std::make_shared<Linear>(3 * inner_, H_));
    f_gate_ = register_module("f_gate", std::make_shared<Linear>(3 * inner_, H_));
    i_bias_ = register_parameter("i_bias", torch::empty(H_));
    f_bias_ = register_parameter("f_bias", torch::empty(H_));
    norm_ = register_module("norm", std::make_shared<HeadNorm>(inner_, c.norm_eps));
    skip_ = register_parameter("skip", torch::empty(inner_));
    o_proj_ = register_module("o_proj", std::make_shared<Linear>(inner_, width));
  }

  Tensor mix(const Rows& x, State& state, const Context& context) override {
    fit_state(state, 4, "mlstm");
    const Tensor inner = x.through(*x_proj_);
    const Tensor convolved = conv_->forward(inner, state[3], true, context.cu_seqlens);
    const Tensor h = cell(inner, convolved, state, context);
    const Tensor skipped = Rows{convolved, {}}.at(context.read_at);
    const Tensor z = x.through(
        *z_proj_, context.read_at.defined() ? context.read_at.unsqueeze(0) : context.read_at);
    const Tensor y = norm_->forward(h) + skip_.to(skipped.scalar_type()) * skipped;
    return o_proj_->forward(y * torch::silu(z));
  }

  void initialise(const Init& init) override;
  std::vector<std::string> undecayed() const override {
    return {"conv1d.bias", "i_bias", "f_bias", "norm.weight", "skip"};
  }
  int64_t state_size() const override { return H_ * (D_ * D_ + D_ + 1) + c_.conv * inner_; }

 private:
  // [B,T,inner] -> h [B,T,H,D], or at context.read_at [1,n,H,D]
  Tensor cell(const Tensor& inner, const Tensor& convolved, State& state,
              const Context& context) const {
    const auto project = [](const BlockLinear& linear, const Tensor& x) {
      return linear.forward(x).flatten(-2);
    };
    const Tensor q = project(*q_proj_, convolved), k = project(*k_proj_, convolved),
                 v = project(*v_proj_, inner);
    const Tensor all = torch::cat({q, k, v}, -1);
    // A forget gate near 1 needs more digits than bfloat16 has.
    const Tensor i = i_gate_->forward(all).to(i_bias_.scalar_type()) + i_bias_,
                 f = f_gate_->forward(all).to(f_bias_.scalar_type()) + f_bias_;
    const auto heads = [&](const Tensor& x) { return x.unflatten(-1, {H_, D_}); };
    if (context.observe) {
      context.observe("forget_gate", f.sigmoid());
      context.observe("write", heads(k));
      context.observe("value", heads(v));
      context.observe("log_write", i);
    }
    const auto out = ops::mlstm({.q = heads(q),
                                 .k = heads(k),
                                 .v = heads(v),
                                 .i = i,
                                 .f = f,
                                 .state = {state[0], state[1], state[2]},
                                 .scale = {},
                                 .cu_seqlens = context.cu_seqlens,
                                 .read_at = context.read_at});
    state[0] = out.state.C, state[1] = out.state.n, state[2] = out.state.m;
    return out.h;
  }

  MlstmConfig c_;
  int64_t width_, inner_, H_, D_;
  std::shared_ptr<Linear> x_proj_, z_proj_, i_gate_, f_gate_, o_proj_;
  std::shared_ptr<BlockLinear> q_proj_, k_proj_, v_proj_;
  std::shared_ptr<ShortConv> conv_;
  std::shared_ptr<HeadNorm> norm_;
  Tensor i_bias_, f_bias_, skip_;
};

// As published: the projections to q, k and v are as small as if they saw the whole width, and the
// down projection is that of a model of one block, however many there are.
void MlstmMixer::initialise(const Init& init) {
  const torch::NoGradGuard no_grad;
  const double small = std::sqrt(2 / (5 * double(width_)));
  const double bound = 1 / std::sqrt(double(c_.conv));
  for (const auto& item : named_parameters()) {
    const auto& name = item.key();
    Tensor w = item.value();
    if (name == "norm.weight" || name.ends_with("gate.weight"))
      w.zero_();
    else if (name == "skip")
      w.fill_(1);
    else if (name == "f_bias")
      w.copy_(torch::linspace(3, 6, H_));
    else if (name == "i_bias")
      fill_normal(w, init.seed, name, 0.1);
    else if (name.starts_with("conv1d"))
      fill_uniform(w, init.seed, name, -bound, bound);
    else
      fill_normal(w, init.seed, name,
                  name == "o_proj.weight" ? 2 / std::sqrt(double(width_)) : small);
  }
}

}  // namespace

Entry entry_mlstm(const char* name, const char* about) {
  const auto build = [](int64_t width, const MlstmConfig& c, const Section& at) {
    const int64_t inner = c.inner(width);
    at.require(inner % c.heads == 0, "heads", "must divide the inner width ", inner, ", got ",
               c.heads);
    at.require(inner % c.block == 0, "block", "must divide the inner width ", inner, ", got ",
               c.block);
    return std::make_shared<MlstmMixer>(width, c);
  };
  return entry<MlstmConfig>(name, about, build);
}

}  // namespace lrnn::mixers
