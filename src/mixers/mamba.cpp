#include <cmath>

#include "mixers/fit_state.h"
#include "mixers/initial.h"
#include "mixers/mixer.h"
#include "ops/linears/linears.h"
#include "ops/read_at/read_at.h"
#include "ops/selective_scan/selective_scan.h"
#include "ops/swiglu/swiglu.h"
#include "ops/take/take.h"

// Mamba as a layer (Gu and Dao 2023), with eigenvalues down to -1 as an extension.
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

  Tensor mix(const Rows& x, State& state, const Context& context) override {
    fit_state(state, 2, "mamba");
    const int64_t N = c_.state_dim;
    // What shapes the output, z and C, only where it is wanted.
    const Tensor& ends = context.read_at;
    const bool whole = !ends.defined();
    std::vector<int64_t> x_sizes = {E_}, u_sizes = {R_, N};
    if (whole) x_sizes.push_back(E_), u_sizes.push_back(N);
    const auto in = x.pieces(*in_proj_, x_sizes);
    const Tensor u = conv_->forward(in[0], state[1], true, context.cu_seqlens);
    const auto parts = Rows{u, {}}.pieces(*x_proj_, u_sizes);
    const Tensor u_at = whole ? u : ops::at_rows(u, ends);

    ops::SelectiveScan scan;
    scan.u = u, scan.B = parts[1];
    scan.C = whole ? parts[2] : ops::linear(u_at, x_proj_->read().rows(R_ + N, N));
    scan.delta = ops::linear(parts[0], dt_proj_->read()), scan.delta_bias = dt_proj_->bias;
    scan.A = -A_log_.exp(), scan.D = D_;
    scan.z = whole ? in[1] : ops::linear(x.at(ends), in_proj_->read().rows(E_, E_));
    scan.state = state[0], scan.negative = c_.range.lo < 0;
    scan.cu_seqlens = context.cu_seqlens, scan.read_at = ends, scan.u_at = u_at;
    if (context.observe) {
      const Tensor dt = torch::softplus(scan.delta + scan.delta_bias);
      const Tensor a = (dt.unsqueeze(-1) * scan.A).exp();
      context.observe("transition", scan.negative ? 2 * a - 1 : a);
    }
    const auto out = ops::selective_scan(scan);
    state[0] = out.state;
    return out_proj_->forward(out.y);
  }

  void initialise(const Init& init) override;
  std::vector<std::string> undecayed() const override { return {"A_log", "D"}; }
  int64_t state_size() const override { return E_ * (c_.state_dim + c_.conv); }

 private:
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
