#pragma once
#include <optional>

#include "mixers/mixer.h"

namespace lrnn::model {

using mixers::Context;
using torch::Tensor;

struct MlpConfig {
  std::string name = "swiglu";
  int64_t hidden = 0;

  template <class Visit> void fields(Visit&& visit) {
    visit("name", name, "what follows the mixer in each block", {"swiglu", "none"});
    visit("hidden", hidden, "hidden units; 0: 4·2/3 of the width, rounded up to 256");
  }
};

struct InitConfig {
  std::string scheme = "chomsky";
  double gain = 0.17677669529663687, std = 0.02;

  template <class Visit> void fields(Visit&& visit) {
    visit("scheme", scheme,
          "chomsky, deltaproduct: the experiments' own; fla: today's library; mamba: embedding "
          "N(0, 1), the rest uniform by fan-in",
          {"chomsky", "deltaproduct", "fla", "mamba"});
    visit("gain", gain, "Xavier gain of the mixer's projections");
    visit("std", std, "deviation of embedding, head and MLP, except with mamba");
  }
};

struct ModelConfig {
  int64_t width = 128, layers = 2;
  Section mixer;
  MlpConfig mlp;
  InitConfig init;
  double norm_eps = 1e-6;
  bool tied = false, final_norm = true;

  template <class Visit> void fields(Visit&& visit) {
    visit("width", width, "size of the residual stream");
    visit("layers", layers, "blocks");
    visit("mixer", mixer, "{name, …}: see `lrnn mixers`");
    visit("mlp", mlp, "what follows the mixer in each block");
    visit("init", init, "initial weights");
    visit("norm_eps", norm_eps, "inside the square root of every RMSNorm");
    visit("tied", tied, "the head uses the embedding's weights");
    visit("final_norm", final_norm, "an RMSNorm stands before the head");
  }
  void check(const Section& at) const;
};

using State = std::vector<mixers::State>;  // one per block; empty means "the beginning of time"

// embedding -> blocks of x + mixer(norm(x)), x + mlp(norm(x)) -> norm (or none) -> head
//
// Parameter names are those of fla: model.embeddings.weight, model.layers.0.attn.q_proj.weight, …
class Model : public torch::nn::Module {
 public:
  // The initial weights are a pure function of config, vocabulary and seed: the same bits on any
  // number of threads. Without a seed, one is drawn from torch's generator (torch::manual_seed).
  Model(const ModelConfig& config, int64_t vocabulary, std::optional<uint64_t> seed = {});
  // The same model with unset weights: to load a checkpoint into, or to count.
  static std::shared_ptr<Model> blank(const ModelConfig& config, int64_t vocabulary);
  void initialise(uint64_t seed);

  // tokens int64 [B,T] (or packed, see Context) -> logits [B,T,vocabulary] ([B,1,..]/[1,S,..] when
  // only the last position is wanted). Reads and replaces `state`.
  Tensor forward(const Tensor& tokens, State& state, const Context& context = {});

  int64_t vocabulary() const { return vocabulary_; }
  int64_t state_size() const;  // floats per sequence
  int64_t parameter_count() const;
  const ModelConfig& config() const { return config_; }
  // Whether weight decay applies to the parameter of that name.
  bool decays(const std::string& name) const;

 private:
  struct Blank {};
  Model(Blank, const ModelConfig& config, int64_t vocabulary);

  struct Impl;
  ModelConfig config_;
  int64_t vocabulary_;
  std::shared_ptr<Impl> impl_;
};
using ModelPtr = std::shared_ptr<Model>;

}  // namespace lrnn::model
