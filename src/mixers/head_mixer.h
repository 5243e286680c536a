#pragma once
#include "mixers/fit_state.h"
#include "mixers/initial.h"
#include "ops/swiglu/swiglu.h"

// What GLA, Titans and TTT have around their recurrences: queries, keys and values as heads,
// through short convolutions where there are any, and an output that a projection may gate. Names
// of layers are fla's.
namespace lrnn::mixers {

// Keys that they have alike.
template <class Visit> void visit_conv(Visit&& visit, int64_t& conv) {
  visit("conv", conv, "kernel of the short convolution with SiLU on q, k and v; 0: none",
        at_least(0));
}
template <class Visit> void visit_output_gate(Visit&& visit, bool& gate) {
  visit("output_gate", gate, "the normed output is multiplied by silu of a projection");
}
// Where outputs go through an RMSNorm.
template <class Visit> void visit_output(Visit&& visit, bool& gate, double& norm_eps) {
  visit_output_gate(visit, gate);
  visit("norm_eps", norm_eps, "inside the square root of the output's RMSNorm", positive());
}

class HeadMixer : public Mixer {
 public:
  void initialise(const Init& init) override {
    const torch::NoGradGuard no_grad;
    for (const auto& item : named_parameters()) {
      const auto& name = item.key();
      Tensor w = item.value();
      if (initialise_own(w, init, name)) continue;
      if (name.ends_with("bias"))
        w.fill_(0);
      else if (w.dim() == 1)
        w.fill_(1);
      else
        fill_weight(w, init, name);
    }
  }

 protected:
  // Parameters that begin otherwise than those of linear layers and norms do.
  virtual bool initialise_own(Tensor& /*w*/, const Init& /*init*/, const std::string& /*name*/) {
    return false;
  }

  // The layers, in the order in which a mixer wants its parameters; the projections come first and
  // say the sizes.
  void add_projections(int64_t width, int64_t heads, int64_t key_dim, int64_t value_dim) {
    keys_ = heads * key_dim, values_ = heads * value_dim;
    q_.proj = add<Linear>("q_proj", width, keys_);
    k_.proj = add<Linear>("k_proj", width, keys_);
    v_.proj = add<Linear>("v_proj", width, values_);
    for (auto* x : {&q_, &k_, &v_}) x->heads = heads;
  }
  void add_convolutions(int64_t kernel) {
    if (kernel == 0) return;
    q_.conv = add<ShortConv>("q_conv1d", keys_, kernel);
    k_.conv = add<ShortConv>("k_conv1d", keys_, kernel);
    v_.conv = add<ShortConv>("v_conv1d", values_, kernel);
  }
  void add_output_gate(int64_t width) { g_proj_ = add<Linear>("g_proj", width, values_); }
  void add_output(int64_t width) { o_proj_ = add<Linear>("o_proj", values_, width); }
  template <class Module, class... Arguments>
  std::shared_ptr<Module> add(const char* name, Arguments... arguments) {
    return register_module(name, std::make_shared<Module>(arguments...));
  }

  // Tensors of a state that begins with `own` of the recurrence: those of the convolutions follow.
  size_t tensors(size_t own) const { return q_.conv ? own + 3 : own; }

  // The output's gate, where outputs are wanted; undefined: none.
  Tensor output_gate(const Rows& x, const Context& context) const {
    const Tensor& ends = context.read_at;
    return g_proj_ ? x.through(*g_proj_, ends.defined() ? ends.unsqueeze(0) : ends) : Tensor();
  }
  Tensor output(const Tensor& y, const Tensor& gate) const {
    return o_proj_->forward(gate.defined() ? ops::swiglu(gate, y) : y);
  }
  // What a projection gives, for a gate that needs more digits than bfloat16 has.
  static Tensor wide(const Tensor& y) {
    return y.scalar_type() == torch::kBFloat16 ? y.to(torch::kFloat32) : y;
  }

  HeadProjection q_, k_, v_;
  int64_t keys_ = 0, values_ = 0;  // channels, of all heads together

 private:
  std::shared_ptr<Linear> g_proj_, o_proj_;
};

}  // namespace lrnn::mixers
