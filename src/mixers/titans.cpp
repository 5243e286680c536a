#include "ops/titans/titans.h"

#include <cmath>

#include "mixers/head_mixer.h"
#include "ops/norm/norm.h"

namespace lrnn::mixers {
namespace {

constexpr double kTitansKeyEps = 1e-6;  // inside the square root that makes a key of length 1
constexpr double kFirstForgets = -4;    // before the sigmoid: a memory begins by losing 2 % a token

struct TitansConfig {
  int64_t heads = 4, key_dim = 16, value_dim = 16, conv = 4;
  Range range = {0, 1};
  bool output_gate = false;
  double norm_eps = 1e-6;

  template <class Visit> void fields(Visit&& visit) {
    visit("heads", heads, "independent memories", at_least(1));
    visit("key_dim", key_dim, "key size per head; rows of a memory", at_least(1));
    visit("value_dim", value_dim, "value size per head; columns of a memory", at_least(1));
    visit("range", range,
          "of theta, the step: [0, 1], or [0, 2] which reflects a memory that forgets nothing",
          {Range{0, 1}, Range{0, 2}});
    visit_conv(visit, conv);
    visit_output(visit, output_gate, norm_eps);
  }
};

// Titans' linear memory as a layer of its own. Step, momentum and forgetting are numbers per head
// and token; keys and queries have length 1.
class Titans final : public HeadMixer {
 public:
  Titans(int64_t width, const TitansConfig& c) : c_(c) {
    add_projections(width, c.heads, c.key_dim, c.value_dim);
    gates_proj_ = add<Linear>("gates_proj", width, 3 * c.heads, true);
    add_convolutions(c.conv);
    if (c.output_gate) add_output_gate(width);
    norm_ = add<RmsNorm>("o_norm", c.value_dim, c.norm_eps);
    add_output(width);
  }

  Tensor mix(const Rows& x, State& state, const Context& context) override {
    fit_state(state, tensors(2), "titans");
    const Tensor gate = output_gate(x, context);
    ops::Titans in;
    in.q = ops::l2_norm(q_.ends(x, state, 2, context), kTitansKeyEps);
    in.k = ops::l2_norm(k_.forward(x, state, 3, context), kTitansKeyEps);
    in.v = v_.forward(x, state, 4, context);
    read_gates(x, in);
    in.state = state[0], in.momentum = state[1];
    in.cu_seqlens = context.cu_seqlens, in.read_at = context.read_at;
    if (context.observe) {
      context.observe("key", in.k);
      context.observe("theta", in.theta);
      context.observe("eta", in.eta);
      context.observe("alpha", in.alpha);
    }
    const auto out = ops::titans(in);
    state[0] = out.state, state[1] = out.momentum;
    return output(norm_->forward(out.o).flatten(-2), gate);
  }

  int64_t state_size() const override {
    return c_.heads * (2 * c_.key_dim * c_.value_dim + c_.conv * (2 * c_.key_dim + c_.value_dim));
  }

 private:
  bool initialise_own(Tensor& w, const Init&, const std::string& name) override {
    if (name != "gates_proj.bias") return false;
    w.fill_(0).view({3, c_.heads})[2].fill_(kFirstForgets);
    return true;
  }

  // A memory that hardly forgets needs more digits of 1 - alpha than bfloat16 has.
  void read_gates(const Rows& x, ops::Titans& in) const {
    const Tensor y = wide(gates_proj_->forward(x.x)).sigmoid();
    const Tensor all = Rows{y, x.token}.rows().unflatten(-1, {3, c_.heads});
    in.theta = c_.range.hi == 1 ? all.select(-2, 0) : all.select(-2, 0) * double(c_.range.hi);
    in.eta = all.select(-2, 1), in.alpha = all.select(-2, 2);
  }

  TitansConfig c_;
  std::shared_ptr<Linear> gates_proj_;
  std::shared_ptr<RmsNorm> norm_;
};

}  // namespace

Entry entry_titans(const char* name, const char* about) {
  return entry<Titans, TitansConfig>(name, about);
}

}  // namespace lrnn::mixers
