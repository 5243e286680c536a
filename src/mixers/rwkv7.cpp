#include "ops/rwkv7/rwkv7.h"

#include <cmath>

#include "mixers/fit_state.h"
#include "mixers/initial.h"
#include "mixers/layers.h"
#include "mixers/mixer.h"
#include "ops/norm/norm.h"

namespace lrnn::mixers {
namespace {

constexpr double kSlowestDecay = 0.6065306597126334;  // e^-1/2: a state keeps at least e^-0.61

struct Rwkv7Config {
  int64_t heads = 4, head_dim = 32, decay_rank = 64, rate_rank = 64, gate_rank = 128;
  int64_t value_rank = 0;
  Range range = {0, 1};
  double norm_eps = 1e-5, key_eps = 1e-12;

  template <class Visit> void fields(Visit&& visit) {
    visit("heads", heads, "independent states", at_least(1));
    visit("head_dim", head_dim, "rows and columns of a state", at_least(1));
    visit("range", range, "of a, the rank-one step: [0, 1] as published, or [0, 2] which reflects",
          {Range{0, 1}, Range{0, 2}});
    visit("decay_rank", decay_rank, "rank of the decay's projection", at_least(1));
    visit("rate_rank", rate_rank, "rank of the projection of a", at_least(1));
    visit("gate_rank", gate_rank, "rank of the output gate's projection", at_least(1));
    visit("value_rank", value_rank,
          "of the projection that mixes the values of later blocks with the first's; 0: no mixing",
          at_least(0));
    visit("key_eps", key_eps, "inside the square root that makes a key of length 1", positive());
    visit("norm_eps", norm_eps, "times head_dim, inside the square root of the output's GroupNorm",
          positive());
  }
};

// fla's module around the pair.
class Lora : public torch::nn::Module {
 public:
  Lora(int64_t in, int64_t rank, int64_t out, bool bias) {
    lora_ = register_module("lora", std::make_shared<LowRank>(in, rank, out, bias, "0", "2"));
  }
  Tensor forward(const Tensor& x, Tensor (*activation)(const Tensor&) = nullptr) const {
    return lora_->forward(x, activation);
  }

 private:
  std::shared_ptr<LowRank> lora_;
};

// The gain and offset of a norm over groups of channels.
class GroupNorm : public torch::nn::Module {
 public:
  GroupNorm(int64_t groups, int64_t channels, double eps) : groups_(groups), eps_(eps) {
    weight = register_parameter("weight", torch::empty(channels));
    bias = register_parameter("bias", torch::empty(channels));
  }
  // x [n,channels]
  Tensor forward(const Tensor& x) const {
    const auto type = weight.scalar_type();
    return torch::group_norm(x.to(type), groups_, weight, bias, eps_).to(x.scalar_type());
  }
  Tensor weight, bias;

 private:
  int64_t groups_;
  double eps_;
};

// The time mixing of RWKV-7; parameter names are fla's.
class Rwkv7 final : public Mixer {
 public:
  Rwkv7(int64_t width, const Rwkv7Config& c) : c_(c), width_(width) {
    const int64_t inner = c.heads * c.head_dim;
    for (const char* name : {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"})
      mix_.push_back(register_parameter(name, torch::empty({1, 1, width})));
    k_k_ = register_parameter("k_k", torch::empty(inner));
    k_a_ = register_parameter("k_a", torch::empty(inner));
    r_k_ = register_parameter("r_k", torch::empty({c.heads, c.head_dim}));
    r_proj_ = register_module("r_proj", std::make_shared<Linear>(width, inner));
    k_proj_ = register_module("k_proj", std::make_shared<Linear>(width, inner));
    v_proj_ = register_module("v_proj", std::make_shared<Linear>(width, inner));
    o_proj_ = register_module("o_proj", std::make_shared<Linear>(inner, width));
    w_lora_ = register_module("w_lora", std::make_shared<Lora>(width, c.decay_rank, inner, true));
    a_lora_ = register_module("a_lora", std::make_shared<Lora>(width, c.rate_rank, inner, true));
    g_lora_ = register_module("g_lora", std::make_shared<Lora>(width, c.gate_rank, inner, false));
    g_norm_ = register_module(
        "g_norm", std::make_shared<GroupNorm>(c.heads, inner, c.norm_eps * double(c.head_dim)));
  }

  void place(int64_t block) override {
    if (block == 0 || c_.value_rank == 0) return;
    v_lora_ = register_module(
        "v_lora", std::make_shared<Lora>(width_, c_.value_rank, c_.heads * c_.head_dim, true));
  }

  bool reads_first_values() const override { return v_lora_ != nullptr; }

  Tensor mix(const Rows& rows, State& state, const Context& context) override {
    fit_state(state, 2, "rwkv7");
    const Tensor x = rows.rows();
    const Tensor d = shifted(x, state[1], context) - x;
    ops::Rwkv7 in = inputs(x, d, context);
    in.state = state[0], in.cu_seqlens = context.cu_seqlens;
    if (context.observe) {
      context.observe("kk", in.kk);
      context.observe("a", in.a);
      context.observe("log_w", in.log_w);
      context.observe("write", in.k);
      context.observe("value", in.v);
    }
    const auto at = [&](const Tensor& y) { return Rows{y, {}}.at(context.read_at); };
    const Tensor x_at = at(x), d_at = at(d);
    in.r = heads(r_proj_->forward(mixed(x_at, d_at, kR))), in.read_at = context.read_at;
    const auto out = ops::rwkv7(in);
    state[0] = out.state;
    return output(out.o, in.r, at(in.k), at(in.v), mixed(x_at, d_at, kG));
  }

  void initialise(const Init& init) override;
  std::vector<std::string> undecayed() const override { return {"k_k", "k_a", "r_k"}; }
  int64_t state_size() const override {
    return c_.heads * c_.head_dim * c_.head_dim + mix_[0].size(2);
  }

 private:
  enum Mix { kR, kW, kK, kV, kA, kG };
  Tensor mixed(const Tensor& x, const Tensor& d, Mix which) const {
    return x + d * mix_[which].view(-1);
  }
  Tensor heads(const Tensor& y) const { return y.unflatten(-1, {c_.heads, c_.head_dim}); }

  // Those of later blocks lean towards those of the first, by a share that the token decides.
  Tensor values(const Tensor& x, const Context& context) const {
    const Tensor v = v_proj_->forward(x);
    if (c_.value_rank == 0) return v;
    if (!v_lora_) {
      if (context.first_values) *context.first_values = v;
      return v;
    }
    lrnn::check(context.first_values && context.first_values->defined(),
                "rwkv7: with value_rank the first block must be rwkv7, too");
    return torch::lerp(v, *context.first_values, torch::sigmoid(v_lora_->forward(x)));
  }

  // What acts on the state.
  ops::Rwkv7 inputs(const Tensor& x, const Tensor& d, const Context& context) const {
    ops::Rwkv7 in;
    const Tensor w = w_lora_->forward(mixed(x, d, kW), torch::tanh);
    const Tensor a = a_lora_->forward(mixed(x, d, kA));
    const Tensor k = k_proj_->forward(mixed(x, d, kK));
    // The logarithm of a decay near 1 needs more digits than bfloat16 has.
    const Tensor wide = w.scalar_type() == torch::kBFloat16 ? w.to(torch::kFloat32) : w;
    in.log_w = heads(-kSlowestDecay * torch::sigmoid(wide));
    in.v = heads(values(mixed(x, d, kV), context));
    in.a = heads(c_.range.hi == 1 ? torch::sigmoid(a) : torch::sigmoid(a) * double(c_.range.hi));
    in.kk = ops::l2_norm(heads(k * k_k_.to(k.scalar_type())), c_.key_eps);
    in.k = heads(k) * (1 + (in.a - 1) * heads(k_a_.to(k.scalar_type())));
    return in;
  }

  // o, r, k, v [..,H,D]; x [..,width] for the gate.
  Tensor output(const Tensor& o, const Tensor& r, const Tensor& k, const Tensor& v,
                const Tensor& x) const {
    const Tensor gate = g_lora_->forward(x, torch::sigmoid);
    const Tensor normed = g_norm_->forward(o.reshape({-1, c_.heads * c_.head_dim})).view_as(o);
    const Tensor bonus = (r * k * r_k_.to(r.scalar_type())).sum(-1, true) * v;
    return o_proj_->forward((normed + bonus).flatten(-2) * gate);
  }

  Rwkv7Config c_;
  int64_t width_;
  std::vector<Tensor> mix_;
  Tensor k_k_, k_a_, r_k_;
  std::shared_ptr<Linear> r_proj_, k_proj_, v_proj_, o_proj_;
  std::shared_ptr<Lora> w_lora_, a_lora_, g_lora_, v_lora_;  // the last from the second block on
  std::shared_ptr<GroupNorm> g_norm_;
};

// Matrices as in the other mixers; the rest as RWKV-7 begins its first layer.
void Rwkv7::initialise(const Init& init) {
  const torch::NoGradGuard no_grad;
  const std::map<std::string, double> power = {{"x_r", .2}, {"x_w", .9}, {"x_k", .7},
                                               {"x_v", .7}, {"x_a", .9}, {"x_g", .2}};
  for (const auto& item : named_parameters()) {
    const auto& name = item.key();
    Tensor w = item.value();
    const Tensor ramp = torch::arange(w.size(-1), w.options()) / double(w.size(-1));
    if (power.contains(name)) {
      w.copy_((1 - ramp.pow(power.at(name))).expand_as(w));
    } else if (name == "k_k") {
      w.fill_(0.85);
    } else if (name == "k_a" || name == "g_norm.weight") {
      w.fill_(1);
    } else if (name == "w_lora.lora.2.bias") {
      // From hardly any decay to the strongest, channel by channel.
      w.copy_(-6.5 + 5 * ramp.pow(0.85));
    } else if (name == "r_k" || name.ends_with("bias")) {
      w.fill_(0);
    } else {
      fill_weight(w, init, name);
    }
  }
}

}  // namespace

Entry entry_rwkv7(const char* name, const char* about) {
  return entry<Rwkv7, Rwkv7Config>(name, about);
}

}  // namespace lrnn::mixers
