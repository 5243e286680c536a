#pragma once
#include <map>

#include "compile/network.h"
#include "model/model.h"

namespace lrnn::compile {

enum class Profile {
  kNative,     // learnt initial states, keys without activation
  kNativeBos,  // states start at zero; tokens before the word write them
  kFla,        // as kNativeBos, with the SiLU that fla puts on q, k and v
  kFp64,       // as kNative, in float64
};
Profile profile_named(const std::string& name);
std::string name_of(Profile profile);

struct Shape {
  Profile profile = Profile::kNative;
  bool negative = true;  // range [-1, 1]
  bool gate = false;     // a forget gate, held open
};

// The tokens are the symbols, then the labels, then those that write initial states.
struct Weights {
  model::ModelConfig config;
  int64_t vocabulary = 0, bos = 0;
  std::map<std::string, torch::Tensor> tensors;
};
Weights weights(const Network& net, const Shape& shape);

}  // namespace lrnn::compile
