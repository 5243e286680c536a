#include "mixers/initial.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <numbers>

#include "base/random.h"
#include "ops/torch.h"

namespace lrnn::mixers {
namespace {

// FNV-1a: a name to a stream of random numbers.
uint64_t stream_of(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const unsigned char c : name) hash = (hash ^ c) * 0x100000001B3u;
  return hash;
}

// draw(random) for every element, one generator per block of elements.
template <class Draw>
void fill(torch::Tensor weight, uint64_t seed, const std::string& name, const Draw& draw) {
  constexpr int64_t kBlock = 4096;
  const torch::NoGradGuard no_grad;
  const int64_t size = weight.numel();
  torch::Tensor values = torch::empty(size, torch::kFloat64);
  double* out = values.data_ptr<double>();
  at::parallel_for(0, (size + kBlock - 1) / kBlock, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      Random random(seed, stream_of(name), static_cast<uint64_t>(block));
      const int64_t last = std::min(size, (block + 1) * kBlock);
      for (int64_t i = block * kBlock; i < last; ++i) out[i] = draw(random);
    }
  });
  weight.copy_(values.view(weight.sizes()));
}

}  // namespace

void fill_uniform(torch::Tensor weight, uint64_t seed, const std::string& name, double lo,
                  double hi) {
  fill(weight, seed, name, [=](Random& random) { return lo + (hi - lo) * random.uniform(); });
}

// Box and Muller's transform; 1 - u lies in (0,1], where the logarithm is finite.
void fill_normal(torch::Tensor weight, uint64_t seed, const std::string& name, double deviation) {
  fill(weight, seed, name, [=](Random& random) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    return deviation * radius * std::cos(2 * std::numbers::pi * random.uniform());
  });
}

void fill_weight(torch::Tensor weight, const Mixer::Init& init, const std::string& name) {
  if (init.scheme == "fla") return fill_normal(weight, init.seed, name, init.std);
  const double bound = weight.dim() == 3
                           ? 1 / std::sqrt(double(weight.size(2)))
                           : init.gain * std::sqrt(6.0 / double(weight.size(0) + weight.size(1)));
  fill_uniform(weight, init.seed, name, -bound, bound);
}

void fill_inverse_softplus(torch::Tensor weight, uint64_t seed, const std::string& name) {
  const torch::NoGradGuard no_grad;
  fill_uniform(weight, seed, name, std::log(0.001), std::log(0.1));
  weight.exp_().clamp_min_(1e-4);
  weight.add_(torch::log(-torch::expm1(-weight)));
}

}  // namespace lrnn::mixers
