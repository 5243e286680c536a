#include <cmath>

#include "mixers/initial.h"
#include "mixers/mixer.h"
#include "ops/linears/linears.h"
#include "ops/selective_scan/selective_scan.h"
#include "ops/swiglu/swiglu.h"
#include "ops/take/take.h"
#include "ops/wide_matmul/wide_matmul.h"

namespace lrnn::mixers {
namespace {

struct MambaConfig {
  int64_t expand = 2, state_dim = 16, dt_rank = 0, conv = 4;
  Range range = {-1, 1};

  template <class Visit> void fields(Visit&& visit) {
    visit("expand", expand, "channels per unit of width", at_least(1));
    visit("state_dim", state_dim, "numbers of state per channel", at_least(1));
    visit("dt_rank", dt_rank, "rank of the step size's projection; 0: a sixteenth of the width",
          at_least_or_0(1, "width / 16"));
    visit("range", range, "of the eigenvalues: [0, 1], or [-1, 1] which can count modulo two",
          {Range{0, 1}, Range{-1, 1}});
    visit("conv", conv, "kernel of the short convolution; 1 looks at the current token only",
          at_least(1));
  }
};

// Parameter names are those of the original and of fla.
class Mamba final : public Mixer {
 public:
  Mamba(int64_t width, const MambaConfig& c)
      : c_(c), E_(c.expand * width), R_(c.dt_rank > 0 ? c.dt_rank : (width + 15) / 16) {
    const int64_t N = c.state_dim;
    in_proj_ = register_module("in_proj", std::make_shared<Linear>(width, 2 * E_));
    conv_ = register_module("conv1d", std::make_shared<ShortConv>(E_, c.conv, true));
    x_proj_ = register_module("x_proj", std::make_shared<Linear>(E_, R_ + 2 * N));
    dt_proj_ = register_module("dt_proj", std::make_shared<Linear>(R_, E_, true));
    A_log_ = register_parameter("A_log", torch::empty({E_, N}));
    D_ = register_parameter("D", torch::empty(E_));
    out_proj_ = register_module("out_proj", std::make_shared<Linear>(E_, width));
  }

  Tensor forward(const Rows& x, State& state, const Context& context) override {
    if (state.empty()) state.resize(2);
    lrnn::check(state.size() == 2, "mamba: the state has ", state.size(), " tensors, not 2");
    const Tensor &w = in_proj_->weight, w_z = w.narrow(0, E_, E_);
    std::vector<Tensor> weights = {w.narrow(0, 0, E_)};
    if (!context.last_only) weights.push_back(w_z);
    auto in = ops::linears(x.x, std::move(weights));
    if (x.token.defined()) in = ops::take(in, x.token);
    const Tensor u = conv_->forward(in[0], state[1], true, context.cu_seqlens);
    if (!context.last_only) return whole(u, in[1], state, context);
    const Tensor pick = context.last_rows(x.batch(), x.length(), 1, x.x.device()).squeeze(1);
    return last(u, pick, ops::linear(x.rows(pick), w_z), state, context);
  }

  void initialise(const Init& init) override;
  std::vector<std::string> undecayed() const override { return {"A_log", "D"}; }
  int64_t state_size() const override { return E_ * (c_.state_dim + c_.conv); }

 private:
  // What acts on the state: everything but the outputs.
  ops::SelectiveScan scan(const Tensor& u, const Tensor& dt, const Tensor& B, const State& state,
                          const Context& context) const {
    ops::SelectiveScan in;
    in.u = u, in.B = B;
    in.delta = ops::linear(dt, dt_proj_->weight), in.delta_bias = dt_proj_->bias;
    in.A = -A_log_.exp();
    in.state = state[0];
    in.negative = c_.range.lo < 0;
    in.cu_seqlens = context.cu_seqlens;
    if (context.observe) {
      const Tensor a = (torch::softplus(in.delta + in.delta_bias).unsqueeze(-1) * in.A).exp();
      context.observe("transition", in.negative ? 2 * a - 1 : a);
    }
    return in;
  }

  Tensor whole(const Tensor& u, const Tensor& z, State& state, const Context& context) const {
    const int64_t N = c_.state_dim;
    const Tensor& w = x_proj_->weight;
    const auto parts =
        ops::linears(u, {w.narrow(0, 0, R_), w.narrow(0, R_, N), w.narrow(0, R_ + N, N)});
    auto in = scan(u, parts[0], parts[1], state, context);
    in.C = parts[2], in.D = D_, in.z = z;
    const auto out = ops::selective_scan(in);
    state[0] = out.state;
    return out_proj_->forward(out.y);
  }

  // The state alone runs over the sequence; it is read once, at the rows `pick` [S]. z [S,E].
  Tensor last(const Tensor& u, const Tensor& pick, const Tensor& z, State& state,
              const Context& context) const {
    const int64_t N = c_.state_dim;
    const Tensor& w = x_proj_->weight;
    const auto parts = ops::linears(u, {w.narrow(0, 0, R_), w.narrow(0, R_, N)});
    state[0] = ops::selective_scan(scan(u, parts[0], parts[1], state, context)).state;
    const Tensor u_last = ops::take({u.flatten(0, 1)}, pick)[0];
    const Tensor C = ops::linear(u_last, w.narrow(0, R_ + N, N));
    const Tensor read =
        ops::wide_matmul(state[0], C.to(state[0].scalar_type()).unsqueeze(-1)).squeeze(-1);
    const Tensor y = (read + D_ * u_last).to(u.scalar_type());
    return out_proj_->forward(ops::swiglu(z, y)).unsqueeze(context.cu_seqlens.defined() ? 0 : 1);
  }

  MambaConfig c_;
  int64_t E_, R_;
  std::shared_ptr<Linear> in_proj_, x_proj_, dt_proj_, out_proj_;
  std::shared_ptr<ShortConv> conv_;
  Tensor A_log_, D_;
};

void Mamba::initialise(const Init& init) {
  const torch::NoGradGuard no_grad;
  for (const auto& item : named_parameters()) {
    const auto& name = item.key();
    Tensor w = item.value();
    if (name == "A_log") {
      w.copy_(torch::arange(1, c_.state_dim + 1, w.options()).log().expand_as(w));
    } else if (name == "D") {
      w.fill_(1);
    } else if (name == "dt_proj.bias") {
      fill_inverse_softplus(w, init.seed, name);
    } else if (init.scheme == "fla" && name == "conv1d.bias") {
      w.fill_(0);
    } else if (init.scheme == "fla" && name != "dt_proj.weight") {
      fill_normal(w, init.seed, name, init.std);
    } else {
      // Torch's own for linear layers and convolutions, and Mamba's for the step size.
      const double bound = 1 / std::sqrt(double(name.starts_with("conv1d") ? c_.conv : w.size(1)));
      fill_uniform(w, init.seed, name, -bound, bound);
    }
  }
}

}  // namespace

Entry entry_mamba(const char* name, const char* about) {
  return entry<Mamba, MambaConfig>(name, about);
}

}  // namespace lrnn::mixers
