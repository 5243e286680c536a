#include "mixers/delta_product.h"

#include <cmath>

#include "mixers/fit_state.h"
#include "mixers/initial.h"
#include "ops/delta_inputs/delta_inputs.h"
#include "ops/delta_product/delta_product.h"
#include "ops/inner.h"
#include "ops/join/join.h"
#include "ops/swiglu/swiglu.h"
#include "ops/take/take.h"
#include "ops/wide_sigmoid/wide_sigmoid.h"

namespace lrnn::mixers {
namespace {

// Channels are ordered (n h d): householder first, as in fla's checkpoints.
class DeltaProduct final : public Mixer, public HasPacks {
 public:
  DeltaProduct(int64_t width, const DeltaProductConfig& c) : c_(c) {
    const int64_t N = c.householders, H = c.heads, S = c.states(), K = c.key_dim, V = c.value();
    q_proj_ = add<Linear>("q_proj", width, H * K);
    k_proj_ = add<Linear>("k_proj", width, N * H * K);
    v_proj_ = add<Linear>("v_proj", width, N * S * V);
    if (c.beta) b_proj_ = add<Linear>("b_proj", width, N * S);
    if (c.forget_gate) {
      if (c.gates_channels())  // fla's rank
        f_proj_ = add<LowRank>("f_proj", width, V, S * K, false, "0", "1");
      else
        a_proj_ = add<Linear>("a_proj", width, S);
      A_log_ = register_parameter("A_log", torch::empty(S));
      dt_bias_ = register_parameter("dt_bias", torch::empty(c.gates_channels() ? S * K : S));
    }
    if (c.conv > 0) {
      q_conv_ = add<ShortConv>("q_conv1d", H * K, c.conv);
      k_conv_ = add<ShortConv>("k_conv1d", N * H * K, c.conv);
      v_conv_ = add<ShortConv>("v_conv1d", N * S * V, c.conv);
    }
    if (c.output_gate) g_proj_ = add<Linear>("g_proj", width, S * V);
    if (c.initial_state)
      initial_state_ = register_parameter("initial_state", torch::empty({S, K, V}));
    o_norm_ = add<RmsNorm>("o_norm", V, c.norm_eps);
    o_proj_ = add<Linear>("o_proj", S * V, width);
    // In the order in which they stand above. Rows of products should lie on 16 bytes.
    products_ = Pack({q_proj_, k_proj_, v_proj_});
    if (b_proj_ && N * S % 8 == 0) products_.add(b_proj_);
    if (b_proj_ && a_proj_ && S % 8 == 0) products_.add(a_proj_);
    if (c.conv > 0) convs_ = Pack({q_conv_, k_conv_, v_conv_});
  }

  Tensor mix(const Rows& x, State& state, const Context& context) override {
    const bool conv = c_.conv > 0;
    fit_state(state, conv ? 4 : 1, "delta_product");
    // At the ends of sequences q and the gate are made there alone; other rows are picked from all.
    const bool ends = context.reads_ends(x.batch(), x.length());
    Products p = project(x.x, ends);
    // Without a convolution every input is a function of the token alone where x is: the table is
    // then looked up at the very end.
    if (conv) look_up({&p.joint, &p.q, &p.gate, &p.k, &p.v, &p.beta, &p.log_gate}, x.token);
    if (p.joint.defined()) cut(p);
    Tensor lengths;
    if (ends && !conv)
      p.q = x.through(*q_proj_, context.read_at.unsqueeze(0)).view({1, -1, c_.heads, c_.key_dim});
    if (ends && conv) {  // the last rows of each sequence are what a convolution reads
      lengths = context.lengths(x.length(), x.x.device());
      p.q = x.through(*q_proj_, context.last_rows(x.batch(), x.length(), c_.conv, x.x.device()));
    }
    auto [q, k, v, states] = ops::delta_inputs({.qkv = p.qkv,
                                                .q = p.q,
                                                .k = p.k,
                                                .v = p.v,
                                                .lengths = lengths,
                                                .conv = convs_.read(),
                                                .states = {state.begin() + 1, state.end()},
                                                .N = c_.householders,
                                                .H = c_.heads,
                                                .K = c_.key_dim,
                                                .V = values_per_head(),
                                                .qk_activation = c_.qk_activation,
                                                .v_activation = c_.v_activation,
                                                .qk_norm = c_.qk_norm,
                                                .cu_seqlens = context.cu_seqlens});
    if (conv) std::copy(states.begin(), states.end(), state.begin() + 1);
    const double largest = c_.negative() ? 2 : 1;
    if (c_.states() != c_.heads)
      v = v.reshape(cat_sizes(v.sizes().slice(0, v.dim() - 2), {c_.states(), c_.value()}));
    Tensor beta = c_.beta ? step_size(p.beta, largest)
                          : torch::full(v.sizes().slice(0, v.dim() - 1), largest,
                                        k.options().requires_grad(false));
    // The logarithm of a gate near 1 needs more digits than bfloat16 has.
    Tensor log_gate;
    if (c_.forget_gate) {
      const Tensor raw = torch::softplus(p.log_gate.to(A_log_.scalar_type()) + dt_bias_);
      log_gate = c_.gates_channels()
                     ? -A_log_.exp().unsqueeze(-1) * raw.unflatten(-1, {c_.states(), c_.key_dim})
                     : -A_log_.exp() * raw;
    }
    Tensor none;  // q at the ends is no table
    if (!conv) look_up({ends ? &none : &q, &p.gate, &k, &v, &beta, &log_gate}, x.token);
    if (context.observe) {  // by state, also where several share keys
      context.observe("k", k.repeat_interleave(c_.states() / c_.heads, -2));
      context.observe("v", v);
      context.observe("beta", beta);
      if (c_.forget_gate) context.observe("log_gate", log_gate);
      if (c_.initial_state) context.observe("initial_state", initial_state_.unsqueeze(0));
    }

    const auto out = ops::delta_product(
        {.q = q,
         .k = k,
         .v = v,
         .beta = beta,
         .log_gate = log_gate,
         .state = before(k, state, context),
         .scale = {},
         .cu_seqlens = context.cu_seqlens,
         .accuracy = context.accuracy.empty() ? c_.asked_accuracy() : context.accuracy,
         .read_at = context.read_at});
    state[0] = out.state;
    if (ends && g_proj_) p.gate = x.through(*g_proj_, context.read_at.unsqueeze(0));
    if (!ends && g_proj_) p.gate = Rows{p.gate, {}}.at(context.read_at);
    return output(out.o, p.gate);
  }
  bool picks_rows() const override { return true; }
  std::vector<Pack*> packs() override { return {&products_, &convs_}; }

  void initialise(const Init& init) override;
  std::vector<std::string> undecayed() const override {
    std::vector<std::string> out;
    if (c_.forget_gate) out = {"A_log", "dt_bias"};
    if (c_.beta && !c_.beta_decay) out.emplace_back("b_proj.weight");
    if (c_.initial_state) out.emplace_back("initial_state");
    return out;
  }
  bool reads_products() const override { return true; }
  int64_t state_size() const override {
    const int64_t N = c_.householders, H = c_.heads, S = c_.states(), K = c_.key_dim,
                  V = c_.value();
    return S * K * V + c_.conv * (H * (K + N * K) + S * N * V);
  }

 private:
  template <class Module, class... Sizes>
  std::shared_ptr<Module> add(const char* name, Sizes... sizes) {
    return register_module(name, std::make_shared<Module>(sizes...));
  }

  struct Products {
    Tensor joint;         // several of the following as one, until they are cut
    Tensor qkv, q, k, v;  // either the first or the others
    Tensor beta, log_gate, gate;
  };

  // Every product with x, at all positions; q and the gate unless only the ends are wanted. What a
  // convolution reads keeps its channels in one dimension.
  Products project(const Tensor& x, bool ends) const {
    const int64_t N = c_.householders, H = c_.heads, K = c_.key_dim;
    Products p;
    std::vector<ops::Weight> weights;
    std::vector<Tensor*> to;
    ops::Shapes shapes;
    const auto want = [&](Tensor& y, const std::shared_ptr<Linear>& projection, bool flat,
                          std::initializer_list<int64_t> divided) {
      if (!projection) return;
      weights.push_back(projection->read()), to.push_back(&y);
      auto shape = x.sizes().vec();
      shape.back() = projection->weight.size(0);
      if (!flat) shape.pop_back(), shape.insert(shape.end(), divided);
      shapes.push_back(std::move(shape));
    };
    const bool conv = c_.conv > 0;
    if (!ends) want(p.q, q_proj_, conv, {H, K}), want(p.gate, g_proj_, true, {});
    want(p.k, k_proj_, conv, {N, H, K}), want(p.v, v_proj_, conv, {N, H, values_per_head()});
    want(p.beta, b_proj_, false, {N, c_.states()}), want(p.log_gate, a_proj_, true, {});
    const auto made =
        ops::linears(x, weights, shapes, ends ? ops::Joint() : products_.joint(weights));
    for (size_t i = 0; i < to.size(); ++i) *to[i] = made.each[i];
    p.joint = made.joint;
    if (f_proj_) p.log_gate = f_proj_->forward(x);
    return p;
  }
  // The members of the pack apart, but q, k and v, which take the same way.
  void cut(Products& p) const {
    const int64_t N = c_.householders, H = c_.heads, S = c_.states();
    std::vector<int64_t> sizes = {H * (c_.key_dim * (1 + N) + N * values_per_head()), N * S, S};
    sizes.resize(products_.members().size() - 2);
    const auto parts = ops::split(p.joint, sizes, -1);
    p.qkv = parts[0];
    if (parts.size() > 1) p.beta = parts[1].unflatten(-1, {N, S});
    if (parts.size() > 2) p.log_gate = parts[2];
  }

  Tensor step_size(const Tensor& x, double largest) const {
    if (c_.step == "sigmoid") return ops::wide_sigmoid(x, largest);
    const Tensor wide = x.to(ops::wide_type(x)), hard = largest * (0.25 * wide + 0.5).clamp(0, 1);
    if (c_.step == "hard_sigmoid") return hard;
    const Tensor soft = largest * wide.sigmoid();
    return hard.detach() + (soft - soft.detach());  // the difference is exactly 0
  }

  // Each of the tables that there are, at the tokens; nothing where x is no table.
  static void look_up(std::vector<Tensor*> tables, const Tensor& token) {
    if (!token.defined()) return;
    std::erase_if(tables, [](const Tensor* table) { return !table->defined(); });
    std::vector<Tensor> from;
    for (const Tensor* table : tables) from.push_back(*table);
    const auto rows = ops::take(from, token);
    for (size_t i = 0; i < tables.size(); ++i) *tables[i] = rows[i];
  }

  // The state that the first token finds.
  Tensor before(const Tensor& k, const State& state, const Context& context) const {
    if (state[0].defined() || !c_.initial_state) return state[0];
    const auto& cu = context.cu_seqlens;
    const int64_t sequences = cu.defined() ? cu.size(0) - 1 : k.size(0);
    return initial_state_.unsqueeze(0).expand({sequences, -1, -1, -1});
  }

  // Of all the states that share a head's keys.
  int64_t values_per_head() const { return c_.states() / c_.heads * c_.value(); }
  static std::vector<int64_t> cat_sizes(at::IntArrayRef a, at::IntArrayRef b) {
    auto out = a.vec();
    out.insert(out.end(), b.begin(), b.end());
    return out;
  }

  // o [..,H,V], gate [..,H*V] or undefined
  Tensor output(const Tensor& o, const Tensor& gate) const {
    Tensor y = o_norm_->forward(o);
    std::vector<int64_t> shape = o.sizes().vec();
    shape.pop_back();
    if (gate.defined()) y = ops::swiglu(gate, y.view(gate.sizes()));
    shape.back() = o_proj_->weight.size(0);
    return ops::linears(y, {o_proj_->read()}, {shape})[0];
  }

  DeltaProductConfig c_;
  std::shared_ptr<Linear> q_proj_, k_proj_, v_proj_, b_proj_, a_proj_, g_proj_, o_proj_;
  std::shared_ptr<LowRank> f_proj_;  // of gates of key channels
  std::shared_ptr<ShortConv> q_conv_, k_conv_, v_conv_;
  std::shared_ptr<RmsNorm> o_norm_;
  Pack products_, convs_;
  Tensor A_log_, dt_bias_, initial_state_;
};

void DeltaProduct::initialise(const Init& init) {
  const torch::NoGradGuard no_grad;
  for (const auto& item : named_parameters()) {
    const auto& name = item.key();
    Tensor w = item.value();
    if (name == "o_norm.weight") {
      w.fill_(1);
    } else if (name == "initial_state") {
      w.zero_();
    } else if (name == "A_log") {
      fill_uniform(w, init.seed, name, c_.gates_channels() ? 1 : 0, 16);  // as fla begins
      w.log_();
    } else if (name == "dt_bias") {
      fill_inverse_softplus(w, init.seed, name);
    } else {
      fill_weight(w, init, name);
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
