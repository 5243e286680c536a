#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>

#include "mixers/fit_state.h"
#include "mixers/initial.h"
#include "mixers/padded.h"
#include "ops/take/take.h"

// Causal softmax attention, the mixer of the Transformer rows. The papers say of theirs only that
// it has the width, heads and layers of the others; ours is the plain one of today: no biases, no
// dropout, rotary positions. Blocks, norms and MLP are those of the model around it.
namespace lrnn::mixers {
namespace {

struct AttentionConfig {
  int64_t heads = 4, kv_heads = 0, head_dim = 0, context = 512;
  std::string positions = "rotary";
  double rotary_base = 10000;

  template <class Visit> void fields(Visit&& visit) {
    visit("heads", heads, "of attention", at_least(1));
    visit("kv_heads", kv_heads,
          "heads of keys and values, each read by as many queries; 0: as heads", at_least(0));
    visit("head_dim", head_dim, "size of a head; 0: the width divided by the heads", at_least(0));
    visit("positions", positions, "how a token knows its place", {"rotary", "learned", "none"});
    visit("rotary_base", rotary_base, "the longest wavelength of rotary positions, over 2 pi",
          above(1));
    visit("context", context, "how many learned positions there are; more tokens are an error",
          at_least(1));
  }
};

// The state is one tensor [S,N,2*G*D+1], G the heads of keys and values, with a row for each past
// token: its key, its value and a 1. Rows of zeros stand before those of a sequence that is shorter
// than others of the batch.
class Attention final : public Mixer {
 public:
  Attention(int64_t width, const AttentionConfig& c)
      : c_(c),
        H_(c.heads),
        G_(c.kv_heads > 0 ? c.kv_heads : c.heads),
        D_(c.head_dim > 0 ? c.head_dim : width / c.heads) {
    q_proj_ = register_module("q_proj", std::make_shared<Linear>(width, H_ * D_));
    k_proj_ = register_module("k_proj", std::make_shared<Linear>(width, G_ * D_));
    v_proj_ = register_module("v_proj", std::make_shared<Linear>(width, G_ * D_));
    o_proj_ = register_module("o_proj", std::make_shared<Linear>(H_ * D_, width));
    if (c.positions == "learned")
      positions_ = register_parameter("positions", torch::empty({c.context, width}));
  }

  Tensor mix(const Rows& x, State& state, const Context& context) override {
    fit_state(state, 1, "attention");
    const Padded padded(x, context);
    const int64_t T = padded.length(), past = state[0].defined() ? state[0].size(1) : 0;
    const Tensor place = places(padded, state[0]);  // [S,T]
    if (positions_.defined() && place.numel() > 0) {
      const int64_t last = past > 0 ? place.max().item<int64_t>() : T - 1;
      lrnn::check(last < c_.context, "attention: there are ", c_.context,
                  " learned positions, and a token has the number ", last + 1);
    }
    const bool ends = padded.only_ends();
    const Tensor q_place = ends ? place.slice(1, T - 1) : place;
    const Tensor q =
        rotate(at(x, *q_proj_, ends ? padded.pick_last() : padded.pick(), q_place), q_place);
    const Tensor k = rotate(at(x, *k_proj_, padded.pick(), place), place),
                 v = at(x, *v_proj_, padded.pick(), place);
    const Tensor rows = remember(padded, k, v, state[0]);
    const Tensor mask = allowed(rows, padded, past, q.size(1));
    Tensor keys = k, values = v;
    if (past > 0) {
      // Copied: some kernels want rows on 16 bytes, and those of the state have an odd number of
      // values.
      keys = rows.slice(2, 0, G_ * D_).unflatten(2, {G_, D_}).contiguous();
      values = rows.slice(2, G_ * D_, 2 * G_ * D_).unflatten(2, {G_, D_}).contiguous();
    }
    if (G_ != H_) {
      keys = keys.repeat_interleave(H_ / G_, 2);
      values = values.repeat_interleave(H_ / G_, 2);
    }
    const auto heads = [](const Tensor& y) { return y.transpose(1, 2); };
    const Tensor o = heads(at::scaled_dot_product_attention(
        heads(q.to(keys.scalar_type())), heads(keys), heads(values),
        mask.defined() ? std::optional<Tensor>(mask) : std::nullopt, 0.0,
        !mask.defined() && q.size(1) > 1));
    state[0] = compact(padded, rows, past);
    return padded.back(o_proj_->forward(o.flatten(2)));
  }

  void initialise(const Init& init) override {
    const torch::NoGradGuard no_grad;
    for (const auto& item : named_parameters()) {
      Tensor w = item.value();
      const double bound = init.gain * std::sqrt(6.0 / double(w.size(0) + w.size(1)));
      if (init.scheme == "fla" || item.key() == "positions")
        fill_normal(w, init.seed, item.key(), init.std);
      else
        fill_uniform(w, init.seed, item.key(), -bound, bound);
    }
  }
  int64_t state_size() const override { return 2 * G_ * D_ + 1; }
  bool state_grows() const override { return true; }

 private:
  // The number of tokens before each one. [S,T]
  Tensor places(const Padded& padded, const Tensor& state) const {
    const auto options = q_proj_->weight.options().dtype(torch::kInt64).requires_grad(false);
    const Tensor before = state.defined()
                              ? state.select(2, 2 * G_ * D_).sum(1, true).to(torch::kInt64)
                              : torch::zeros({padded.sequences(), 1}, options);
    if (!padded.packed()) return before + torch::arange(padded.length(), options);
    return (before + padded.valid().cumsum(1) - 1).clamp_min(0);
  }

  // W (x + position) [S,T,H,D], or [S,T,G,D]
  Tensor at(const Rows& x, const Linear& linear, const Tensor& pick, const Tensor& place) const {
    Tensor y = x.through(linear, pick);
    if (positions_.defined()) y = y + ops::take({linear.forward(positions_)}, place)[0];
    return y.unflatten(-1, {linear.weight.size(0) / D_, D_});
  }

  // Pairs (d, d + D/2) turn by the place times their frequency; the last of an odd size does not.
  Tensor rotate(const Tensor& y, const Tensor& place) const {
    const int64_t half = D_ / 2;
    if (c_.positions != "rotary" || half == 0) return y;
    const auto options = torch::dtype(torch::kFloat64).device(y.device());
    const Tensor frequency =
        torch::exp(torch::arange(half, options) * (-std::log(c_.rotary_base) / double(half)));
    const Tensor angle = (place.unsqueeze(-1) * frequency).unsqueeze(2);  // [S,T,1,half], double
    const Tensor c = angle.cos().to(y.scalar_type()), s = angle.sin().to(y.scalar_type());
    const Tensor a = y.slice(-1, 0, half), b = y.slice(-1, half, 2 * half);
    return torch::cat({a * c - b * s, b * c + a * s, y.slice(-1, 2 * half)}, -1);
  }

  // The state's rows with the new ones behind them, in the precision of the weights.
  Tensor remember(const Padded& padded, const Tensor& k, const Tensor& v,
                  const Tensor& past) const {
    const auto wide = q_proj_->weight.scalar_type();
    Tensor one =
        torch::ones({k.size(0), k.size(1), 1}, k.options().dtype(wide).requires_grad(false));
    if (padded.packed()) one = padded.valid().unsqueeze(-1).to(wide);
    const Tensor rows = torch::cat({k.flatten(2).to(wide), v.flatten(2).to(wide), one}, 2);
    return past.defined() ? torch::cat({past, rows}, 1) : rows;
  }

  // Which keys [past + T] each of the last n tokens may see: [S,1,n,past+T], or undefined for all
  // before it. A row of padding sees itself, so that its softmax has something to divide by.
  static Tensor allowed(const Tensor& rows, const Padded& padded, int64_t past, int64_t n) {
    if (!padded.packed() && past == 0) return {};
    const int64_t total = rows.size(1);
    const auto options = torch::dtype(torch::kInt64).device(rows.device());
    const Tensor key = torch::arange(total, options),
                 query = torch::arange(total - n, total, options).unsqueeze(1);
    const Tensor real = (rows.detach().select(2, rows.size(2) - 1) > 0).view({-1, 1, 1, total});
    return real.logical_and(key <= query).logical_or(key == query);
  }

  // Closes the gaps that packed sequences of different lengths leave.
  static Tensor compact(const Padded& padded, const Tensor& rows, int64_t past) {
    if (!padded.packed() || past == 0) return rows;
    const Tensor real = rows.detach().select(2, rows.size(2) - 1) > 0;  // [S,N]
    const Tensor order = torch::argsort(real.to(torch::kInt64), /*stable=*/true, 1, false);
    const int64_t longest = real.sum(1).max().item<int64_t>();
    const Tensor index = order.slice(1, rows.size(1) - longest).unsqueeze(-1);
    return rows.gather(1, index.expand({-1, -1, rows.size(2)}));
  }

  AttentionConfig c_;
  int64_t H_, G_, D_;
  std::shared_ptr<Linear> q_proj_, k_proj_, v_proj_, o_proj_;
  Tensor positions_;
};

}  // namespace

Entry entry_attention(const char* name, const char* about) {
  const auto build = [](int64_t width, const AttentionConfig& c, const Section& at) {
    at.require(c.head_dim > 0 || width % c.heads == 0, "heads", "must divide the width ", width,
               " where head_dim is not given, got ", c.heads);
    at.require(c.kv_heads == 0 || c.heads % c.kv_heads == 0, "kv_heads", "must divide the ",
               c.heads, " heads, got ", c.kv_heads);
    return std::make_shared<Attention>(width, c);
  };
  return entry<AttentionConfig>(name, about, build);
}

}  // namespace lrnn::mixers
