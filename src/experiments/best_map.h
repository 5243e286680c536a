#pragma once
#include <complex>
#include <optional>

#include "ops/torch.h"

namespace lrnn::experiments {

// What one letter does to the outputs of a recurrence that is not linear, as far as a line can say
// it: of the map `after` = A `before` + b with the least squared error, the eigenvalue of A that is
// largest in size. Both are [points,D]. Directions in which the outputs hardly vary are left out,
// for their slopes are noise (dynamic mode decomposition, Schmid 2010). Nothing when the points are
// few, or when the map explains less than nine tenths of what varies.
std::optional<std::complex<double>> best_map(const torch::Tensor& before,
                                             const torch::Tensor& after);

}  // namespace lrnn::experiments
