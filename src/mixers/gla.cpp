#include <cmath>

#include "mixers/head_mixer.h"
#include "ops/gated_linear_attention/gated_linear_attention.h"
#include "ops/take/take.h"

// Gated linear attention as a layer (Yang et al. 2024), with gates down to -1 as an extension.
namespace lrnn::mixers {
namespace {

struct GlaConfig {
  int64_t heads = 4, key_dim = 16, value_dim = 32, conv = 0, gate_rank = 16;
  double gate_normaliser = 16, clamp = 0, norm_eps = 1e-6;
  Range range = {0, 1};
  bool output_gate = true;

  template <class Visit> void fields(Visit&& visit) {
    visit("heads", heads, "independent states", at_least(1));
    visit("key_dim", key_dim, "key size per head; rows of a state, each with a gate of its own",
          at_least(1));
    visit("value_dim", value_dim, "value size per head; columns of a state", at_least(1));
    visit("range", range, "of the eigenvalues: [0, 1] as published, or [-1, 1] with 2 gate - 1",
          {Range{0, 1}, Range{-1, 1}});
    visit_conv(visit, conv);
    visit("gate_rank", gate_rank, "rank of the gate's projection", at_least(1));
    visit("gate_normaliser", gate_normaliser,
          "the gate is a sigmoid to the power of one over this; 1 moves fastest", positive());
    visit("clamp", clamp, "the least logarithm of a gate, below 0; 0: none", between(-1e9, 0));
    visit_output(visit, output_gate, norm_eps);
  }
};

// Parameter names are fla's.
class Gla final : public HeadMixer {
 public:
  Gla(int64_t width, const GlaConfig& c) : c_(c) {
    add_projections(width, c.heads, c.key_dim, c.value_dim);
    gk_proj_ = add<LowRank>("gk_proj", width, c.gate_rank, keys_, true, "0", "1");
    add_convolutions(c.conv);
    if (c.output_gate) add_output_gate(width);
    norm_ = add<RmsNorm>(c.output_gate ? "g_norm_swish_gate" : "g_norm", c.value_dim, c.norm_eps);
    add_output(width);
  }

  Tensor mix(const Rows& x, State& state, const Context& context) override {
    fit_state(state, tensors(1), "gla");
    const Tensor q = q_.ends(x, state, 1, context);
    const Tensor gate = output_gate(x, context);
    ops::GatedLinearAttention in;
    in.k = k_.forward(x, state, 2, context);
    in.v = v_.forward(x, state, 3, context);
    in.log_gate = log_gate(x);
    in.state = state[0], in.negative = c_.range.lo < 0, in.cu_seqlens = context.cu_seqlens;
    in.q = q, in.read_at = context.read_at;
    if (context.observe) {
      const Tensor a = in.log_gate.exp();
      context.observe("gate", in.negative ? 2 * a - 1 : a);
      context.observe("write", in.k);
      context.observe("value", in.v);
    }
    const auto out = ops::gated_linear_attention(in);
    state[0] = out.state;
    return output(norm_->forward(out.o).flatten(-2), gate);
  }

  int64_t state_size() const override {
    return c_.heads * (c_.key_dim * c_.value_dim + c_.conv * (2 * c_.key_dim + c_.value_dim));
  }

 private:
  // The logarithm of a gate near 1 needs more digits than bfloat16 has.
  Tensor log_gate(const Rows& x) const {
    Tensor g = torch::log_sigmoid(wide(gk_proj_->forward(x.x))) / c_.gate_normaliser;
    if (c_.clamp < 0) g = g.clamp_min(c_.clamp);
    const Tensor rows = x.token.defined() ? ops::take({g}, x.token)[0] : g;
    return rows.unflatten(-1, {c_.heads, c_.key_dim});
  }

  GlaConfig c_;
  std::shared_ptr<LowRank> gk_proj_;
  std::shared_ptr<RmsNorm> norm_;
};

}  // namespace

Entry entry_gla(const char* name, const char* about) { return entry<Gla, GlaConfig>(name, about); }

}  // namespace lrnn::mixers
