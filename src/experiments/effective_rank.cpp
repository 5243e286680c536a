#include "experiments/effective_rank.h"

#include <ATen/Parallel.h>

#include <limits>

namespace lrnn::experiments {

using torch::Tensor;

torch::Tensor effective_rank(const Tensor& matrices) {
  const auto shape = matrices.sizes().vec();
  const Tensor flat = matrices.reshape({-1, shape[shape.size() - 2], shape.back()})
                          .to(torch::kCPU, torch::kFloat64);
  Tensor out = torch::zeros({flat.size(0)}, torch::kFloat64);
  // Small problems, of which LAPACK does one after another.
  constexpr int64_t kPerThread = 16;
  at::parallel_for(0, flat.size(0), kPerThread, [&](int64_t begin, int64_t end) {
    const torch::InferenceMode no_gradients;
    const Tensor sigma = torch::linalg_svdvals(flat.slice(0, begin, end));
    // What is left of nothing, as the published analysis drops it.
    const Tensor kept = sigma > std::numeric_limits<double>::epsilon();
    const Tensor p = sigma / sigma.sum(-1, true);
    const Tensor terms = torch::where(kept, p * p.log(), torch::zeros_like(p));
    out.slice(0, begin, end)
        .copy_(torch::where(kept.any(-1), terms.sum(-1).neg().exp(),
                            torch::zeros({}, torch::kFloat64)));
  });
  return out.view(at::IntArrayRef(shape).slice(0, shape.size() - 2));
}

}  // namespace lrnn::experiments
