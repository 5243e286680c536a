#include <ATen/autocast_mode.h>

#include <cmath>

#include "mixers/initial.h"
#include "mixers/padded.h"
#include "ops/linears/linears.h"

// The toy recurrences of the paper's introduction and its full-matrix baseline. They are loops over
// time in plain torch: small models, for showing what a recurrence can and cannot do.
namespace lrnn::mixers {
namespace {

// torch's default, the weight divided by `divisor`.
void initialise_as_torch(const Linear& linear, uint64_t seed, const std::string& name,
                         double divisor) {
  const double bound = 1 / std::sqrt(double(linear.weight.size(1)));
  fill_uniform(linear.weight, seed, name + ".weight", -bound / divisor, bound / divisor);
  fill_uniform(linear.bias, seed, name + ".bias", -bound, bound);
}

// A mixer whose state is one tensor, advanced by step() from one token to the next.
class Loop : public Mixer {
 public:
  Tensor mix(const Rows& x, State& state, const Context& context) override {
    const Padded padded(x, context);
    const Tensor u = x.rows(padded.pick());  // [S,T,D]
    if (state.empty()) state.resize(1);
    lrnn::check(state.size() == 1, "the state has ", state.size(), " tensors, not 1");
    const auto wide = parameters().front().scalar_type();
    Tensor s = state[0].defined() ? state[0] : first(padded.sequences(), u.options().dtype(wide));
    const std::vector<Tensor> inputs = prepare(u);
    if (context.observe) observe(inputs, context);
    std::vector<Tensor> out;
    for (int64_t t = 0; t < padded.length(); ++t) {
      std::vector<Tensor> now;
      for (const auto& y : inputs) now.push_back(y.select(1, t).to(wide));
      const Tensor next = step(now, s);
      // Padding comes before a sequence and leaves its first state alone.
      s = padded.packed() ? torch::where(padded.valid().select(1, t).view(shape(next)), next, s)
                          : next;
      if (!padded.only_ends() || t + 1 == padded.length()) out.push_back(s);
    }
    state[0] = s;
    const Tensor y = out.empty() ? torch::zeros_like(u) : read(torch::stack(out, 1)).to(narrow(u));
    return padded.back(y);
  }
  // The states of all steps, stacked, and what a step leaves for backward.
  int64_t kept_per_token() const override { return 5 * state_size(); }

 protected:
  virtual Tensor first(int64_t sequences, const torch::TensorOptions& like) const = 0;
  virtual std::vector<Tensor> prepare(const Tensor& u) const = 0;  // [S,T,..] each
  virtual Tensor step(const std::vector<Tensor>& now, const Tensor& state) const = 0;
  virtual void observe(const std::vector<Tensor>& inputs, const Context& context) const = 0;
  virtual Tensor read(const Tensor& states) const { return states; }  // [S,T,..] -> [S,T,width]

 private:
  static std::vector<int64_t> shape(const Tensor& state) {
    std::vector<int64_t> out(size_t(state.dim()), 1);
    out[0] = state.size(0);
    return out;
  }
  // Under autocast outputs are bfloat16, as those of the other mixers.
  static torch::Dtype narrow(const Tensor& u) {
    const auto device = u.device().type();
    return at::autocast::is_autocast_enabled(device) ? at::autocast::get_autocast_dtype(device)
                                                     : u.scalar_type();
  }
};

// -------------------------------------------------------------------------------------- diagonal

struct DiagonalConfig {
  Range range = {-1, 1};
  template <class Visit> void fields(Visit&& visit) {
    visit("range", range, "of the eigenvalues: [0, 1] through a sigmoid, [-1, 1] through a tanh",
          {Range{0, 1}, Range{-1, 1}});
  }
};

// h <- act(10 (A x + a)) h + (B x + b) x, elementwise.
class Diagonal final : public Loop {
 public:
  Diagonal(int64_t width, const DiagonalConfig& c) : c_(c), width_(width) {
    A_ = register_module("A", std::make_shared<Linear>(width, width, true));
    B_ = register_module("B", std::make_shared<Linear>(width, width, true));
  }
  void initialise(const Init& init) override {
    initialise_as_torch(*A_, init.seed, "A", std::sqrt(double(width_)));
    initialise_as_torch(*B_, init.seed, "B", std::sqrt(double(width_)));
  }
  int64_t state_size() const override { return width_; }

 private:
  Tensor first(int64_t sequences, const torch::TensorOptions& like) const override {
    return torch::zeros({sequences, width_}, like);
  }
  std::vector<Tensor> prepare(const Tensor& u) const override {
    const Tensor a = 10 * A_->forward(u);
    return {c_.range.lo < 0 ? a.tanh() : a.sigmoid(), B_->forward(u) * u};
  }
  Tensor step(const std::vector<Tensor>& now, const Tensor& h) const override {
    return now[0] * h + now[1];
  }
  void observe(const std::vector<Tensor>& inputs, const Context& context) const override {
    context.observe("transition", inputs[0]);
  }
  DiagonalConfig c_;
  int64_t width_;
  std::shared_ptr<Linear> A_, B_;
};

// ----------------------------------------------------------------------------------- full matrix

struct FullMatrixConfig {
  template <class Visit> void fields(Visit&&) {}
};

// h <- A_x h + B_x x, with matrices that are linear in x and divided by the root of the width.
class FullMatrix final : public Loop {
 public:
  explicit FullMatrix(int64_t width) : width_(width) {
    A_ = register_module("A", std::make_shared<Linear>(width, width * width, true));
    B_ = register_module("B", std::make_shared<Linear>(width, width * width, true));
  }
  void initialise(const Init& init) override {
    initialise_as_torch(*A_, init.seed, "A", 1), initialise_as_torch(*B_, init.seed, "B", 1);
  }
  int64_t state_size() const override { return width_; }

 private:
  Tensor first(int64_t sequences, const torch::TensorOptions& like) const override {
    return torch::zeros({sequences, width_}, like);
  }
  std::vector<Tensor> prepare(const Tensor& u) const override { return {u}; }
  // The matrices of one step at a time: those of all would be the width times the activations.
  Tensor step(const std::vector<Tensor>& now, const Tensor& h) const override {
    const double share = 1 / std::sqrt(double(width_));
    const auto times = [&](const Linear& linear, const Tensor& x) {
      const Tensor matrix = linear.forward(now[0]).to(x.scalar_type()).view({-1, width_, width_});
      return share * ops::wide_matmul(matrix, x.unsqueeze(-1)).squeeze(-1);
    };
    return times(*A_, h) + times(*B_, now[0]);
  }
  void observe(const std::vector<Tensor>& inputs, const Context& context) const override {
    context.observe("matrix", A_->forward(inputs[0]).unflatten(-1, {width_, width_}) /
                                  std::sqrt(double(width_)));
  }
  int64_t width_;
  std::shared_ptr<Linear> A_, B_;
};

// -------------------------------------------------------------------------------- matrix product

struct MatrixProductConfig {
  int64_t size = 32;
  template <class Visit> void fields(Visit&& visit) {
    visit("size", size, "of the square matrices that tokens stand for", at_least(1));
  }
};

// The full-matrix baseline of the group experiments: H <- A_x H from H = 1, read through a
// projection onto the unit ball. A_x is a learned matrix per token: linear in its embedding, and
// the identity where that is zero.
class MatrixProduct final : public Loop {
 public:
  MatrixProduct(int64_t width, const MatrixProductConfig& c) : n_(c.size) {
    A_ = register_module("A", std::make_shared<Linear>(width, n_ * n_, true));
    o_proj_ = register_module("o_proj", std::make_shared<Linear>(n_ * n_, width));
  }
  void initialise(const Init& init) override {
    const torch::NoGradGuard no_grad;
    const double bound = 1 / double(n_);
    fill_uniform(A_->weight, init.seed, "A.weight", -bound, bound);
    A_->bias.copy_(torch::eye(n_).flatten());
    fill_uniform(o_proj_->weight, init.seed, "o_proj.weight", -bound, bound);
  }
  int64_t state_size() const override { return n_ * n_; }

 private:
  Tensor first(int64_t sequences, const torch::TensorOptions& like) const override {
    return torch::eye(n_, like).repeat({sequences, 1, 1});
  }
  std::vector<Tensor> prepare(const Tensor& u) const override {
    return {A_->forward(u).unflatten(-1, {n_, n_})};
  }
  Tensor step(const std::vector<Tensor>& now, const Tensor& H) const override {
    return ops::wide_matmul(now[0], H);
  }
  void observe(const std::vector<Tensor>& inputs, const Context& context) const override {
    context.observe("matrix", inputs[0]);
  }
  Tensor read(const Tensor& states) const override {
    const Tensor h = states.flatten(2), size = h.norm(2, -1, true).clamp_min(1);
    return o_proj_->forward(h / size);
  }
  int64_t n_;
  std::shared_ptr<Linear> A_;
  std::shared_ptr<Linear> o_proj_;
};

}  // namespace

Entry entry_diagonal(const char* name, const char* about) {
  return entry<Diagonal, DiagonalConfig>(name, about);
}

Entry entry_full_matrix(const char* name, const char* about) {
  return entry<FullMatrixConfig>(name, about,
                                 [](int64_t width, const FullMatrixConfig&, const Section&) {
                                   return std::make_shared<FullMatrix>(width);
                                 });
}

Entry entry_matrix_product(const char* name, const char* about) {
  return entry<MatrixProduct, MatrixProductConfig>(name, about);
}

}  // namespace lrnn::mixers
