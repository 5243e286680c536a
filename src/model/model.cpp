#include "model/model.h"

#include <algorithm>
#include <set>

#include "base/random.h"
#include "mixers/initial.h"
#include "model/block.h"
#include "ops/again.h"
#include "ops/no_memory.h"

namespace lrnn::model {

constexpr int64_t kLargestTable = 1024;  // tokens: of no task of ours but text

// The part that fla calls `model`: everything but the head.
class Trunk : public torch::nn::Module {
 public:
  Trunk(const ModelConfig& c, int64_t vocabulary) {
    // A module of its own because the tensor is called embeddings.weight.
    embeddings_ =
        register_module("embeddings", std::make_shared<mixers::Linear>(c.width, vocabulary));
    auto layers = register_module("layers", std::make_shared<torch::nn::ModuleListImpl>());
    for (int64_t i = 0; i < c.layers; ++i)
      layers->push_back(blocks_.emplace_back(std::make_shared<Block>(c, i)));
    if (c.input_norm) input_norm_ = make_norm(c);
    if (input_norm_) register_module("input_norm", input_norm_);
    if (c.final_norm) norm_ = make_norm(c);
    if (norm_) register_module("norm", norm_);
  }

  Tensor forward(const Tensor& tokens, State& state, const Context& context) const {
    Stream x{{embeddings_->weight, tokens}, {}};
    // Few tokens of many: looking them up first is less work than transforming the table. A
    // language's is never worth it, for rows of all that comes of it have to be looked up as well.
    const int64_t table = embeddings_->weight.size(0);
    if (table >= tokens.numel() || table >= kLargestTable) x = {{x.x.rows(), {}}, {}};
    if (input_norm_) x.x.x = input_norm_->forward(x.x.x);
    const auto first_values = std::make_shared<Tensor>();
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const bool last = i + 1 == blocks_.size();
      const Context here = layer_context(context, i, last, first_values);
      // A table is small, and its gradient is a sum with the head's, which would change its order.
      const auto how = int64_t(i) < recomputed ? recompute : Model::Recompute::kNothing;
      const ops::MakeAgain cheap(how == Model::Recompute::kCheap);
      const bool again =
          how == Model::Recompute::kBlocks && at::GradMode::is_enabled() && !context.observe;
      x = again && !x.x.token.defined() ? run_again_in_backward(blocks_[i], x, state[i], here)
                                        : blocks_[i]->forward(x, state[i], here);
    }
    // What the head reads, before its norm.
    if (context.observe) context.observe("stream", x.sum());
    return norm_ ? norm_->after(x.x.x, x.y, true).second : x.sum();
  }

  const Tensor& embedding() const { return embeddings_->weight; }
  ops::Weight tied_head() const { return embeddings_->read(); }
  const std::vector<std::shared_ptr<Block>>& blocks() const { return blocks_; }

  Model::Recompute recompute = Model::Recompute::kNothing;
  int64_t recomputed = 0;  // blocks, from the first on

 private:
  static Context layer_context(const Context& context, size_t layer, bool last,
                               const std::shared_ptr<Tensor>& first_values) {
    Context out{.cu_seqlens = context.cu_seqlens,
                .read_at = last ? context.read_at : Tensor(),
                .accuracy = context.accuracy,
                .first_values = first_values};
    if (context.observe)
      out.observe = [&context, layer](const std::string& name, const Tensor& value) {
        context.observe(cat("layers.", layer, ".", name), value);
      };
    return out;
  }

  std::shared_ptr<mixers::Linear> embeddings_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<mixers::Norm> input_norm_, norm_;  // null: none
};

namespace {

void check_input(const Tensor& tokens, const Context& context, const State& state, size_t layers) {
  check(tokens.dim() == 2 && tokens.scalar_type() == torch::kInt64,
        "model: tokens must be int64 [B,T], got ", tokens.scalar_type(), " ", tokens.sizes());
  check(!context.cu_seqlens.defined() || tokens.size(0) == 1,
        "model: packed tokens must be [1,total], got ", tokens.sizes());
  check(!context.read_at.defined() ||
            (context.read_at.dim() == 1 && context.read_at.scalar_type() == torch::kInt64),
        "model: read_at must be int64 [n], got ", context.read_at.scalar_type(), " ",
        context.read_at.sizes());
  check(state.empty() || state.size() == layers, "model: the state has ", state.size(),
        " blocks, the model ", layers);
}

}  // namespace

void ModelConfig::check(const Section& at) const {
  at.require(block == "residual" || mlp.name == "none", "block",
             "plain leaves no place for an mlp");
  mixers::resolve(mixer);
  for (const int64_t i : hybrid.layers)
    at.child("hybrid").require(i < layers, "layers", "must be below the number of blocks ", layers,
                               ", got ", i);
  if (hybrid.any()) mixers::resolve(hybrid.mixer);
  if (hybrid.mlp.node().size() > 0) load<MlpConfig>(hybrid.mlp);
}

MlpConfig ModelConfig::mlp_of(int64_t i) const {
  return hybrid.has(i) && hybrid.mlp.node().size() > 0 ? load<MlpConfig>(hybrid.mlp) : mlp;
}

struct Model::Impl {
  std::shared_ptr<Trunk> trunk;
  std::shared_ptr<mixers::Linear> head;  // null: the embedding is the head
  std::set<std::string> vectors;         // the names of tensors of one dimension
};

Model::Model(Blank, const ModelConfig& config, int64_t vocabulary)
    : config_(config), vocabulary_(vocabulary), impl_(std::make_shared<Impl>()) {
  check(vocabulary >= 1, "model: the vocabulary must have at least 1 token, got ", vocabulary);
  impl_->trunk = register_module("model", std::make_shared<Trunk>(config, vocabulary));
  if (!config.tied)
    impl_->head =
        register_module("lm_head", std::make_shared<mixers::Linear>(config.width, vocabulary));
  if (config.dtype == "float64") to(torch::kFloat64);
  for (const auto& item : named_parameters())
    if (item.value().dim() < 2) impl_->vectors.insert(item.key());
}

Model::Model(const ModelConfig& config, int64_t vocabulary, std::optional<uint64_t> seed)
    : Model(Blank{}, config, vocabulary) {
  if (!seed)
    seed = static_cast<uint64_t>(torch::randint(INT64_MAX, {}, torch::kInt64).item<int64_t>());
  initialise(*seed);
}

std::shared_ptr<Model> Model::blank(const ModelConfig& config, int64_t vocabulary) {
  return std::shared_ptr<Model>(new Model(Blank{}, config, vocabulary));
}

std::shared_ptr<Model> Model::shapes(const ModelConfig& config, int64_t vocabulary) {
  try {
    const ops::NoMemory shapes_only;
    return blank(config, vocabulary);
  } catch (const c10::Error&) {  // more numbers than can be counted
    throw Error("no machine has the memory for such a model",
                cat("model.width is ", config.width, "; are the mixer's own sizes right?"));
  }
}

// Everything but the mixers, which know best themselves.
void Model::initialise(uint64_t seed) {
  const torch::NoGradGuard no_grad;
  const InitConfig& c = config_.init;
  const double shrink = 1 / std::sqrt(2.0 * double(config_.layers));
  const bool xlstm = c.scheme == "xlstm";
  const double width = double(config_.width), std = xlstm ? std::sqrt(2 / (5 * width)) : c.std;
  for (const auto& item : named_parameters()) {
    const auto& name = item.key();
    Tensor w = item.value();
    if (name.find(".attn.") != std::string::npos) continue;
    if (name.ends_with("norm.weight")) {
      w.fill_(config_.norm == "layer" ? 0 : 1);  // where the gain is 1 + weight
    } else if (name.ends_with("norm.bias")) {
      w.fill_(0);
    } else if (name.ends_with("mlp.x_k")) {  // as RWKV-7 begins
      w.copy_(1 - torch::arange(w.size(0), w.options()) / double(w.size(0)));
    } else if (c.scheme == "mamba") {
      const double bound = 1 / std::sqrt(double(w.size(1)));
      if (name == "model.embeddings.weight")
        mixers::fill_normal(w, seed, name, 1);
      else
        mixers::fill_uniform(w, seed, name, -bound, bound);
    } else if (!(name.ends_with("down_proj.weight") || name.ends_with("mlp.value.weight")) ||
               c.scheme == "fla") {
      mixers::fill_normal(w, seed, name, std);
    } else if (xlstm) {
      mixers::fill_normal(w, seed, name, 2 / double(config_.layers) / std::sqrt(width));
    } else if (c.scheme == "chomsky") {
      mixers::fill_normal(w, seed, name, c.std * shrink);
    } else {
      const double bound = shrink / std::sqrt(double(w.size(1)));
      mixers::fill_uniform(w, seed, name, -bound, bound);
    }
  }
  const auto& blocks = impl_->trunk->blocks();
  for (size_t i = 0; i < blocks.size(); ++i)
    blocks[i]->mixer().initialise({.scheme = c.scheme,
                                   .gain = c.gain,
                                   .std = c.std,
                                   .seed = Random(seed, 0, i).bits(),
                                   .block = int64_t(i),
                                   .blocks = int64_t(blocks.size())});
}

Tensor Model::hidden(const Tensor& tokens, State& state, const Context& context) {
  check_input(tokens, context, state, impl_->trunk->blocks().size());
  state.resize(impl_->trunk->blocks().size());
  Context here = context;
  if (here.read_at.defined()) here.read_at = here.read_at.to(device());
  return impl_->trunk->forward(tokens, state, here);
}

Tensor Model::forward(const Tensor& tokens, State& state, const Context& context) {
  return ops::linear(hidden(tokens, state, context), head());
}

ops::Weight Model::head() const {
  return impl_->head ? impl_->head->read() : impl_->trunk->tied_head();
}

void Model::recompute(Recompute what, int64_t count) {
  for (const auto& block : impl_->trunk->blocks())
    if (what == Recompute::kBlocks && block->mixer().reads_first_values())
      throw Error("blocks that share values (value_rank of rwkv7) cannot be computed again alone",
                  "leave train.recompute at none");
  impl_->trunk->recompute = what, impl_->trunk->recomputed = count;
}

int64_t Model::state_size(int64_t tokens) const {
  int64_t size = 0;
  for (const auto& block : impl_->trunk->blocks())
    size += block->mixer().state_size() * (block->mixer().state_grows() ? tokens : 1) +
            block->mlp_state_size();
  return size;
}

const mixers::Mixer& Model::mixer(int64_t block) const {
  return impl_->trunk->blocks().at(size_t(block))->mixer();
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const auto& parameter : parameters()) count += parameter.numel();
  return count;
}

torch::Device Model::device() const { return impl_->trunk->embedding().device(); }

bool Model::decays(const std::string& name) const {
  if (config_.decay == "matrices" &&
      (name == "model.embeddings.weight" || impl_->vectors.contains(name)))
    return false;
  const std::string prefix = "model.layers.", middle = ".attn.";
  const size_t at = name.find(middle);
  if (!name.starts_with(prefix) || at == std::string::npos) return true;
  const auto block = size_t(std::stoull(name.substr(prefix.size())));
  const auto own = impl_->trunk->blocks().at(block)->mixer().undecayed();
  return std::find(own.begin(), own.end(), name.substr(at + middle.size())) == own.end();
}

}  // namespace lrnn::model
