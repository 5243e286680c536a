#pragma once
#include "mixers/mixer.h"

namespace lrnn::mixers {

// DeltaNet, Gated DeltaNet, DeltaProduct, Gated DeltaProduct and Kimi Delta Attention's recurrence
// are one layer with switches.
struct DeltaProductConfig {
  int64_t heads = 4, key_dim = 32, value_dim = 0, value_heads = 0, householders = 1;
  Range range = {-1, 1};
  int64_t conv = 4;
  bool forget_gate = false, output_gate = false;
  std::string qk_activation = "silu", v_activation = "silu", qk_norm = "l2";
  bool beta = true, beta_decay = true, initial_state = false;
  std::string step = "sigmoid", gate_per = "head";
  double norm_eps = 1e-6;
  std::string accuracy = "auto";

  template <class Visit> void fields(Visit&& visit) {
    visit("heads", heads, "independent states", at_least(1));
    visit("key_dim", key_dim, "key size per head; rows of a state", at_least(1));
    visit("value_dim", value_dim, "value size per head; columns of a state",
          at_least_or_0(1, "key_dim"));
    visit("value_heads", value_heads,
          "states, of which several share the keys and queries of a head; 0: as heads",
          at_least(0));
    visit("householders", householders, "reflections per token; 1 is DeltaNet", at_least(1));
    visit("range", range, "of the eigenvalues; [-1, 1] can count modulo two",
          {Range{0, 1}, Range{-1, 1}});
    visit("conv", conv, "kernel of the short convolution on q, k and v; 0: none", at_least(0));
    visit("forget_gate", forget_gate, "the state decays by a learnt factor before each token");
    visit("gate_per", gate_per,
          "what has a forget gate of its own: a head, or, as in Kimi Delta Attention, each of its "
          "key channels",
          {"head", "channel"});
    visit("output_gate", output_gate, "the normed output is multiplied by silu of a projection");
    visit("qk_activation", qk_activation, "of q and k", {"silu", "relu", "elu", "none"});
    visit("v_activation", v_activation, "of v", {"silu", "none"});
    visit("qk_norm", qk_norm, "of q and k per head", {"l2", "sum", "none"});
    visit("beta", beta, "false: the step size is not learnt but 1 (2 with the range [-1, 1])");
    visit("step", step,
          "what makes the step size of a projection x: sigmoid(x), which is below 1 for every x; "
          "hard_sigmoid, 1/2 + x/4 cut off at 0 and 1, which reaches both; straight_through, the "
          "same with the gradient of the sigmoid. Twice that with the range [-1, 1]",
          {"sigmoid", "hard_sigmoid", "straight_through"});
    visit("beta_decay", beta_decay, "weight decay acts on the projection of the step size, too");
    visit("initial_state", initial_state, "the state before the first token is learnt, not zero");
    visit("norm_eps", norm_eps, "inside the square root of the output's RMSNorm", positive());
    visit("accuracy", accuracy,
          "of bfloat16 on a GPU; auto: fast behind a forget gate with range [0, 1], else accurate",
          {"auto", "fast", "accurate", "exact"});
  }

  void check(const Section& at) const {
    at.require(value_heads % heads == 0, "value_heads", "must be a multiple of the ", heads,
               " heads, got ", value_heads);
    at.require(forget_gate || !gates_channels(), "gate_per",
               "channel says how fine a forget gate is: set forget_gate to true");
  }
  int64_t states() const { return value_heads == 0 ? heads : value_heads; }
  int64_t value() const { return value_dim == 0 ? key_dim : value_dim; }
  bool negative() const { return range.lo < 0; }
  bool gates_channels() const { return gate_per == "channel"; }
  // What the op is asked for, see ops/delta_product/delta_product.h. Rounding adds up where beta
  // |k|^2 exceeds 1 and a step reflects.
  std::string asked_accuracy() const {
    if (accuracy != "auto") return accuracy;
    return forget_gate && !negative() && qk_norm == "l2" ? "fast" : "accurate";
  }
};

MixerPtr make_delta_product(int64_t width, const DeltaProductConfig& config);

}  // namespace lrnn::mixers
