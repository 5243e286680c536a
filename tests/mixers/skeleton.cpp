#include <cmath>

#include "mixers/initial.h"
#include "mixers/padded.h"

// A leaky sum of the inputs, whose leak the token decides, per channel:
//
//   a = sigmoid(W x), or tanh(W x) for [-1, 1]      h <- a h + x      y = U h
namespace lrnn::mixers {
namespace {

struct LeakyConfig {
  Range range = {0, 1};

  template <class Visit> void fields(Visit&& visit) {
    visit("range", range, "of the leak: [0, 1] through a sigmoid, [-1, 1] through a tanh");
  }
  void check(const Section& at) const {
    at.require(range == Range{0, 1} || range == Range{-1, 1}, "range",
               "must be [0, 1] or [-1, 1], got [", range.lo, ", ", range.hi, "]");
  }
};

class Leaky final : public Mixer {
 public:
  Leaky(int64_t width, const LeakyConfig& c) : c_(c), width_(width) {
    leak_ = register_module("leak", std::make_shared<Linear>(width, width));
    o_proj_ = register_module("o_proj", std::make_shared<Linear>(width, width));
  }

  Tensor mix(const Rows& x, State& state, const Context& context) override {
    if (state.empty()) state.resize(1);
    lrnn::check(state.size() == 1, "leaky: the state has ", state.size(), " tensors, not 1");
    const Padded padded(x, context);  // packed sequences side by side: [S,T,..]
    // The state keeps the weights' precision, whatever that of the products is.
    const auto wide = leak_->weight.scalar_type();
    const Tensor u = x.rows(padded.pick()).to(wide);
    const Tensor w = x.through(*leak_, padded.pick()).to(wide);
    const Tensor a = c_.range.lo < 0 ? w.tanh() : w.sigmoid();
    if (context.observe) context.observe("transition", a);

    Tensor h =
        state[0].defined() ? state[0] : torch::zeros({padded.sequences(), width_}, u.options());
    std::vector<Tensor> seen;
    for (int64_t t = 0; t < padded.length(); ++t) {
      const Tensor next = a.select(1, t) * h + u.select(1, t);
      // Rows before a shorter sequence leave its state alone.
      h = padded.packed() ? torch::where(padded.valid().select(1, t).unsqueeze(-1), next, h) : next;
      if (!padded.only_ends() || t + 1 == padded.length()) seen.push_back(h);
    }
    state[0] = h;
    const Tensor y = seen.empty() ? torch::zeros_like(u) : torch::stack(seen, 1);
    return o_proj_->forward(padded.back(y));
  }

  // A pure function of `init`, for every scheme.
  void initialise(const Init& init) override {
    const torch::NoGradGuard no_grad;
    for (const auto& item : named_parameters()) {
      Tensor w = item.value();
      const double bound = init.gain * std::sqrt(6.0 / double(w.size(0) + w.size(1)));
      if (init.scheme == "fla")
        fill_normal(w, init.seed, item.key(), init.std);
      else
        fill_uniform(w, init.seed, item.key(), -bound, bound);
    }
  }
  int64_t state_size() const override { return width_; }

 private:
  LeakyConfig c_;
  int64_t width_;
  std::shared_ptr<Linear> leak_, o_proj_;
};

}  // namespace

Entry entry_leaky(const char* name, const char* about) {
  return entry<Leaky, LeakyConfig>(name, about);
}

}  // namespace lrnn::mixers
