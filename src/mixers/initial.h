#pragma once
#include <torch/types.h>

#include <cstdint>
#include <string>

#include "mixers/mixer.h"

// Initial weights as a pure function of (seed, name of the tensor, index): the same bits whatever
// was initialised before, on any number of threads.
namespace lrnn::mixers {

void fill_uniform(torch::Tensor weight, uint64_t seed, const std::string& name, double lo,
                  double hi);
void fill_normal(torch::Tensor weight, uint64_t seed, const std::string& name, double deviation);
// A matrix, or the kernels [C,1,W] of a convolution, by the model's scheme: normal ("fla"), or
// Xavier's times a gain and torch's own for convolutions.
void fill_weight(torch::Tensor weight, const Mixer::Init& init, const std::string& name);
// The inverse softplus of step sizes between 0.001 and 0.1, uniform in their logarithm.
void fill_inverse_softplus(torch::Tensor weight, uint64_t seed, const std::string& name);

}  // namespace lrnn::mixers
