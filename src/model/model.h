#pragma once
#include <algorithm>
#include <optional>

#include "mixers/mixer.h"

// A language or sequence model: embedding, blocks of a mixer and an MLP, norm, head; and its
// config.
namespace lrnn::model {

using mixers::Context;
using torch::Tensor;

struct MlpConfig {
  std::string name = "swiglu";
  int64_t hidden = 0;

  template <class Visit> void fields(Visit&& visit) {
    visit("name", name,
          "what follows the mixer in each block; channel_mix: RWKV's, which reads the token before",
          {"swiglu", "geglu", "channel_mix", "none"});
    visit("hidden", hidden,
          "hidden units; 0: of swiglu 4·2/3 of the width, rounded up to 256; of geglu 1.3, to 64; "
          "of channel_mix 4, to 32",
          at_least(0));
  }
};

struct InitConfig {
  std::string scheme = "chomsky";
  double gain = 0.17677669529663687, std = 0.02;

  template <class Visit> void fields(Visit&& visit) {
    visit("scheme", scheme,
          "chomsky, deltaproduct: the experiments' own; fla: today's library; mamba: embedding "
          "N(0, 1), the rest uniform by fan-in; xlstm: normal, by the width",
          {"chomsky", "deltaproduct", "fla", "mamba", "xlstm"});
    visit("gain", gain, "Xavier gain of the mixer's projections", positive());
    visit("std", std, "deviation of embedding, head and MLP, except with mamba and xlstm",
          positive());
  }
};

// Blocks with another mixer than the rest: attention every fourth block, and the like.
struct HybridConfig {
  int64_t every = 0;
  std::vector<int64_t> layers;
  Section mixer, mlp;

  template <class Visit> void fields(Visit&& visit) {
    visit("every", every, "blocks every, 2 every, … of 1, 2, … have this mixer; 0: none",
          at_least(0));
    visit("layers", layers, "or those of this list, counted from 0", at_least(0));
    visit("mixer", mixer, "{name, …}: see `lrnn mixers`");
    visit("mlp", mlp, "what follows it; absent: as in the other blocks");
  }
  bool any() const { return every > 0 || !layers.empty(); }
  bool has(int64_t i) const {
    return (every > 0 && (i + 1) % every == 0) ||
           std::find(layers.begin(), layers.end(), i) != layers.end();
  }
};

struct ModelConfig {
  int64_t width = 128, layers = 2;
  Section mixer;
  HybridConfig hybrid;
  MlpConfig mlp;
  InitConfig init;
  std::string block = "residual", norm = "rms", decay = "all";
  double norm_eps = 1e-6;
  bool tied = false, input_norm = false, final_norm = true;
  std::string dtype = "float32";

  template <class Visit> void fields(Visit&& visit) {
    visit("width", width, "size of the residual stream", at_least(1).at_most(1e9));
    visit("layers", layers, "blocks", at_least(1).at_most(10000));
    visit("mixer", mixer, "{name, …}: see `lrnn mixers`");
    visit("hybrid", hybrid, "blocks with another mixer");
    visit("mlp", mlp, "what follows the mixer in each block");
    visit("block", block, "x + mixer(norm(x)), then x + mlp(norm(x)); or norm(mixer(norm(x)))",
          {"residual", "plain"});
    visit("init", init, "initial weights");
    visit(
        "norm", norm,
        "of each block and before the head: RMSNorm, xLSTM's LayerNorm, or affine: LayerNorm with "
        "an offset",
        {"rms", "layer", "affine", "none"});
    visit("norm_eps", norm_eps, "inside the square root of every norm", positive());
    visit("decay", decay,
          "what weight decay acts on: all but a mixer's exceptions; or, as in xLSTM, only tensors "
          "of two or more dimensions and not the embedding",
          {"all", "matrices"});
    visit("tied", tied, "the head uses the embedding's weights");
    visit("input_norm", input_norm, "a norm stands behind the embedding");
    visit("final_norm", final_norm, "a norm stands before the head");
    visit("dtype", dtype, "of the weights and of all that is computed", {"float32", "float64"});
  }
  void check(const Section& at) const;
  // Of block i, counted from 0.
  const Section& mixer_of(int64_t i) const { return hybrid.has(i) ? hybrid.mixer : mixer; }
  MlpConfig mlp_of(int64_t i) const;
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
  // The same with weights that have shapes but no memory: it can be measured, not run.
  static std::shared_ptr<Model> shapes(const ModelConfig& config, int64_t vocabulary);
  void initialise(uint64_t seed);

  // tokens int64 [B,T] (or packed, see Context) -> logits [B,T,vocabulary], or [1,n,vocabulary] at
  // the rows context.read_at. Reads and replaces `state`.
  Tensor forward(const Tensor& tokens, State& state, const Context& context = {});
  // The same in two steps, for a loss that never holds all logits (ops/linear_cross_entropy): the
  // rows that the head reads, [B,T,width] or [1,n,width], and the head, [vocabulary,width]. Where
  // they are tied it is the embedding.
  Tensor hidden(const Tensor& tokens, State& state, const Context& context = {});
  ops::Weight head() const;
  // What backward makes again instead of keeping it: less memory and more work, the same bits.
  // Where blocks are run again no gradient comes through a state.
  enum class Recompute {
    kNothing,
    kCheap,   // norms, short convolutions and what is multiplied with a SiLU
    kBlocks,  // all of a block but what goes into it
  };
  // It does so for the first `blocks` blocks.
  void recompute(Recompute what, int64_t blocks = INT64_MAX);

  int64_t vocabulary() const { return vocabulary_; }
  int64_t state_size(int64_t tokens = 0) const;  // floats per sequence, after so many tokens
  const mixers::Mixer& mixer(int64_t block) const;
  int64_t parameter_count() const;
  const ModelConfig& config() const { return config_; }
  torch::Device device() const;  // where the weights are
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
