#include "ops/slstm/slstm.h"

#include <cmath>

#include "mixers/fit_state.h"
#include "mixers/initial.h"
#include "mixers/mixer.h"
#include "mixers/slstm_jacobian.h"
#include "ops/linears/linears.h"
#include "ops/take/take.h"

// The sLSTM layer of xLSTM (Beck et al. 2024): the state is read before it is written, so it is not
// linear.
namespace lrnn::mixers {
namespace {

struct SlstmConfig {
  int64_t heads = 4, conv = 0;
  std::string bias = "powerlaw";
  double norm_eps = 1e-5;

  template <class Visit> void fields(Visit&& visit) {
    visit("heads", heads, "blocks of the recurrence; they divide the width", at_least(1));
    visit("conv", conv, "kernel of the short convolution before the gates i and f; 0: none",
          at_least(0));
    visit("bias", bias, "initial biases: of f between 5 and -7 and 0; or all uniform as torch's",
          {"powerlaw", "standard"});
    visit("norm_eps", norm_eps, "inside the square root of the output's LayerNorm", positive());
  }
};

// The state is (h, c, n, m), and the convolution's.
class SlstmMixer final : public Mixer {
 public:
  SlstmMixer(int64_t width, const SlstmConfig& c) : c_(c), H_(c.heads), D_(width / c.heads) {
    if_gates_ = register_module("if_gates", std::make_shared<BlockLinear>(H_, D_, 2 * D_));
    zo_gates_ = register_module("zo_gates", std::make_shared<BlockLinear>(H_, D_, 2 * D_));
    R_ = register_parameter("recurrent", torch::empty({H_, D_, 4, D_}));
    bias_ = register_parameter("bias", torch::empty({H_, 4, D_}));
    if (c.conv > 0)
      conv_ = register_module("conv1d", std::make_shared<ShortConv>(width, c.conv, true));
    norm_ = register_module("norm", std::make_shared<HeadNorm>(width, c.norm_eps));
  }

  Tensor mix(const Rows& x, State& state, const Context& context) override {
    fit_state(state, c_.conv > 0 ? 2 : 1, "slstm");
    const Tensor wx = inputs(x, state, context);
    const Tensor before = state[0];
    const auto out = ops::slstm({.wx = wx,
                                 .R = R_,
                                 .bias = bias_,
                                 .state = state[0],
                                 .cu_seqlens = context.cu_seqlens,
                                 .read_at = context.read_at});
    state[0] = out.state;
    if (context.observe && !context.cu_seqlens.defined()) observe(wx, before, context);
    return norm_->forward(out.h);
  }

  void initialise(const Init& init) override;
  std::vector<std::string> undecayed() const override {
    std::vector<std::string> out = {"bias", "norm.weight"};
    if (conv_) out.emplace_back("conv1d.bias");
    return out;
  }
  int64_t state_size() const override { return (4 + c_.conv) * H_ * D_; }

 private:
  // The same steps once more, one by one: what each does depends on the state it finds.
  void observe(const Tensor& wx, const Tensor& before, const Context& context) const {
    const int64_t T = wx.size(1);
    const auto like = wx.options().dtype(R_.scalar_type());
    std::vector<Tensor> states = {before.defined() ? before
                                                   : torch::zeros({wx.size(0), 4, H_, D_}, like)};
    for (int64_t t = 0; t < T; ++t)
      states.push_back(ops::slstm({.wx = wx.narrow(1, t, 1),
                                   .R = R_,
                                   .bias = bias_,
                                   .state = states.back(),
                                   .cu_seqlens = {}})
                           .state);
    const Tensor all = torch::stack(states, 1), found = all.narrow(1, 0, T);  // [B,T,4,H,D]
    const Tensor back = ops::wide_matmul(found.select(2, 0).unsqueeze(-2), R_.flatten(2));
    const Tensor gates = wx.to(R_.scalar_type()) + bias_ + back.view_as(wx);
    context.observe("jacobian", slstm_jacobian(gates, R_, found));
    context.observe("outputs", all.select(2, 0));
  }

  Tensor inputs(const Rows& x, State& state, const Context& context) const {
    if (conv_) {
      const Tensor u = x.rows(), convolved = conv_->forward(u, state[1], true, context.cu_seqlens);
      return torch::cat({if_gates_->forward(convolved), zo_gates_->forward(u)}, -1)
          .unflatten(-1, {4, D_});
    }
    // Of a table, only its rows.
    const Tensor both = torch::cat({if_gates_->weight, zo_gates_->weight}, 1);
    const Tensor wx = BlockLinear::apply(x.x, both).unflatten(-1, {4, D_});
    return x.token.defined() ? ops::take({wx}, x.token)[0] : wx;
  }

  SlstmConfig c_;
  int64_t H_, D_;
  std::shared_ptr<BlockLinear> if_gates_, zo_gates_;
  std::shared_ptr<ShortConv> conv_;
  std::shared_ptr<HeadNorm> norm_;
  Tensor R_, bias_;
};

// Zero recurrent weights: the layer begins as a linear one.
void SlstmMixer::initialise(const Init& init) {
  const torch::NoGradGuard no_grad;
  const double width = double(H_ * D_);
  for (auto* gates : {&if_gates_, &zo_gates_})
    fill_normal((*gates)->weight, init.seed, gates == &if_gates_ ? "if_gates" : "zo_gates",
                std::sqrt(2 / (5 * width)));
  R_.zero_();
  norm_->weight.fill_(norm_->initial());
  if (conv_) {
    const double bound = 1 / std::sqrt(double(c_.conv));
    fill_uniform(conv_->weight, init.seed, "conv1d.weight", -bound, bound);
    fill_uniform(conv_->bias, init.seed, "conv1d.bias", -bound, bound);
  }
  if (c_.bias == "standard") {
    fill_uniform(bias_, init.seed, "bias", -1 / std::sqrt(width), 1 / std::sqrt(width));
    return;
  }
  // From units that remember to units that forget; later blocks have more of the former.
  const double rho = init.blocks > 1 ? double(init.block) / double(init.blocks - 1) : 0;
  const Tensor j = torch::arange(D_, torch::kFloat64) / double(std::max<int64_t>(1, D_ - 1));
  bias_.zero_();
  bias_.select(1, 1).copy_(5 - 12 * j.pow(0.3 + 1.3 * rho));
}

}  // namespace

Entry entry_slstm(const char* name, const char* about) {
  const auto build = [](int64_t width, const SlstmConfig& c, const Section& at) {
    at.require(width % c.heads == 0, "heads", "must divide the width ", width, ", got ", c.heads);
    return std::make_shared<SlstmMixer>(width, c);
  };
  return entry<SlstmConfig>(name, about, build);
}

}  // namespace lrnn::mixers
