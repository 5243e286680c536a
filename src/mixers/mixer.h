#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "mixers/layers.h"
#include "ops/torch.h"

namespace lrnn::mixers {

using torch::Tensor;
using State = std::vector<Tensor>;  // empty means "the beginning of time"

// How the rows of x are arranged, and which of the results are wanted.
struct Context {
  Tensor cu_seqlens = {};  // undefined: x is [B,T,..]; int64 [S+1]: x is [1,total,..], S sequences
                           // end to end, sequence s at cu_seqlens[s] .. cu_seqlens[s+1]-1
  // Undefined: y is wanted everywhere. int64 [n], rising: only at these of the flattened [B*T]
  // rows, [1,n,..]. With one answer per sequence the last block need not work out the rest.
  Tensor read_at = {};
  // Of a recurrence that has several kernels on a GPU: exact, accurate or fast; empty: as the
  // mixer's config says.
  std::string accuracy = {};
  // Where the first block leaves its values for later ones to mix theirs with (RWKV-7); null
  // outside a model.
  std::shared_ptr<Tensor> first_values = {};
  // Called with what the layer computes on the way, for those who look inside; a model puts
  // "layers.0." in front of the name. It changes no result. What a token does to the state, which
  // is what `lrnn spectrum` shows, is told by one of these, for x [B,T,..] (of packed x nothing
  // need be told). The new state is A times the old one, plus something:
  //
  //   names          shapes                   A
  //   k, beta        [B,T,N,H,K], [B,T,N,H]   per head the product of I - beta_j k_j k_j^T,
  //     log_gate     [B,T,H], or not at all   times e^log_gate,
  //                  or [B,T,H,K]             or times diag(e^log_gate), which comes first
  //   log_w, a, kk   [B,T,H,K] each           per head diag(e^log_w) - (a kk) kk^T
  //   theta, eta,    [B,T,H] each             per head, of memory and momentum together:
  //     alpha, key   [B,T,H,K]                [[(1-alpha) I - theta k k^T, eta I],
  //                                            [-theta k k^T, eta I]]
  //   gate           [B,T,H,n]                per head diag(gate)
  //   transition     [B,T,..]                 diag(transition), all channels together
  //   forget_gate    [B,T,H]                  per head forget_gate times the identity
  //   matrix         [B,T,n,n]                matrix
  //   jacobian       [B,T,H,n,n]              not linear: per head d new / d old, at the states
  //     outputs      [B,T+1,H,D], or not      it was in; outputs before, between and after
  //
  // What is added, for who wants the states themselves (`lrnn eval --rank`), where they are
  // matrices:
  //
  //   v              [B,T,N,H,V]              beside k and beta: beta_j k_j v_j^T, factor by factor
  //     initial_state  [1,H,K,V], or not      what the first token finds; not told: zeros
  //   write, value   [B,T,H,K], [B,T,H,V]     beside the others: write value^T,
  //     log_write    [B,T,H], or not          times e^log_write
  //
  // Any other name is free, and nobody but the caller knows what it means.
  std::function<void(const std::string& name, const Tensor& value)> observe = {};

  // Indices into the flattened [B*T] rows: the last `count` positions of each of the S (or B)
  // sequences [S,count], -1 where a sequence is shorter. On `device`, unless cu_seqlens is on a
  // GPU.
  Tensor last_rows(int64_t batch, int64_t length, int64_t count,
                   const torch::Device& device = torch::kCPU) const;
  // Whether read_at is known to be the last row of every sequence.
  bool reads_ends(int64_t batch, int64_t length) const;
  // The lengths int64 [S] of the packed sequences, or [1] when all have the same.
  Tensor lengths(int64_t length, const torch::Device& device = torch::kCPU) const;
};

// What a mixer reads. In the first block x depends on nothing but the token, so it is enough to
// transform the few rows of a table and look the results up.
struct Rows {
  Tensor x;      // [B,T,D], or with `token` a table [vocabulary,D]
  Tensor token;  // undefined, or int64 [B,T]

  int64_t batch() const { return (token.defined() ? token : x).size(0); }
  int64_t length() const { return (token.defined() ? token : x).size(1); }
  // The rows themselves [B,T,D], or the rows `pick` (int64, any shape, indices into the flattened
  // [B*T]; -1 gives zeros): pick's shape + [D].
  Tensor rows(const Tensor& pick = {}) const;
  // The rows `read_at` of a Context [1,n,D]; all of them when it is undefined.
  Tensor at(const Tensor& read_at) const;
  // The rows `pick` of W x.
  Tensor through(const Linear& linear, const Tensor& pick = {}) const;
  // W x, or what its first rows give, in pieces of these sizes.
  std::vector<Tensor> pieces(const Linear& linear, const std::vector<int64_t>& sizes) const;
};

// A mixer maps x [B,T,width] to y [B,T,width], reading `state` and leaving the new one in it.
// There is no separate step(): a step is a forward with T = 1. Promises, tested for every
// registered mixer: y[:, :t] never depends on x[:, t:], feeding x whole or in pieces is the same,
// and so is feeding it packed, as a table with tokens, or asking for some rows of y only.
class Mixer : public torch::nn::Module {
 public:
  Tensor forward(const Rows& x, State& state, const Context& context = {});

  // "chomsky", "deltaproduct": Xavier-uniform with `gain`; "fla": normal with deviation `std`.
  // Mixers with an initialisation of their own keep to it. The weights are a pure function of this
  // struct.
  struct Init {
    std::string scheme = "chomsky";
    double gain = 0.17677669529663687, std = 0.02;  // 2^-2.5
    uint64_t seed = 0;
    int64_t block = 0, blocks = 1;  // which of how many
  };
  virtual void initialise(const Init& init) = 0;
  // Told once, before weights are set: which block of the model this is. A mixer that nobody tells
  // is a first one.
  virtual void place(int64_t /*block*/) {}
  // Whether it reads what the first block left for it (Context::first_values).
  virtual bool reads_first_values() const { return false; }
  // Names of own parameters that weight decay leaves alone.
  virtual std::vector<std::string> undecayed() const { return {}; }
  // Floats per sequence; per token of it where the state grows: its tensors then have the tokens in
  // dimension 1, the newest last, with zeros before the first where others are longer.
  virtual int64_t state_size() const = 0;
  virtual bool state_grows() const { return false; }
  // Floats that training keeps per token beside what the mixer's matrices give out; roughly.
  virtual int64_t kept_per_token() const { return 0; }
  // Whether x is read by matrix products alone, which under autocast round it anyway.
  virtual bool reads_products() const { return false; }

 protected:
  // The layer. Where context.read_at is defined it is the last row of every sequence, which may
  // save most of the work behind the recurrence; other rows are picked from the whole y, unless the
  // layer itself picks them sooner.
  virtual Tensor mix(const Rows& x, State& state, const Context& context) = 0;
  virtual bool picks_rows() const { return false; }
};
using MixerPtr = std::shared_ptr<Mixer>;

struct Entry {
  const char *name, *about;
  std::function<MixerPtr(int64_t width, const Section&)> make;
  std::function<YAML::Node(const Section&)> resolve;  // every key with its value, `name` first
  std::vector<Key> (*keys)();                         // of its own, with their defaults
};

// Of a mixer with these settings. `build` takes the width, the settings, and where they stand, to
// name what does not fit the width.
template <class Config, class Build> Entry entry(const char* name, const char* about, Build build) {
  const auto make = [build](int64_t width, const Section& at) -> MixerPtr {
    return build(width, load<Config>(at, {"name"}), at);
  };
  const auto resolve = [name](const Section& at) {
    YAML::Node out(YAML::NodeType::Map);
    out["name"] = name;
    for (const auto& item : save(load<Config>(at, {"name"}))) out[item.first] = item.second;
    return out;
  };
  return {name, about, make, resolve, [] { return keys<Config>(); }};
}
// Where any width will do.
template <class Mixer, class Config> Entry entry(const char* name, const char* about) {
  return entry<Config>(name, about, [](int64_t width, const Config& config, const Section&) {
    return std::make_shared<Mixer>(width, config);
  });
}

const std::vector<Entry>& all();
const Entry& find(const Section& at);  // by at's key `name`
MixerPtr make(int64_t width, const Section& at);
YAML::Node resolve(const Section& at);

}  // namespace lrnn::mixers
