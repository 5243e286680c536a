#include "experiments/best_map.h"

namespace lrnn::experiments {

using torch::Tensor;

std::optional<std::complex<double>> best_map(const Tensor& before, const Tensor& after) {
  constexpr double kHardly = 0.1, kExplained = 0.9;
  constexpr int64_t kPerDirection = 4;
  const auto centred = [](const Tensor& x) {
    const Tensor wide = x.to(torch::kFloat64);
    return wide - wide.mean(0, true);
  };
  if (before.size(0) < 2 * kPerDirection) return {};
  const Tensor x = centred(before), y = centred(after);
  const double varies = y.square().sum().item<double>();
  const auto [U, S, Vh] = torch::linalg_svd(x, false);
  const double largest = S.max().item<double>();
  if (!(largest > 1e-9) || !(varies > 1e-18)) return {};
  const int64_t rank = (S > kHardly * largest).sum().item<int64_t>();
  if (before.size(0) < kPerDirection * rank) return {};
  const Tensor u = U.narrow(1, 0, rank), s = S.narrow(0, 0, rank), v = Vh.narrow(0, 0, rank);
  // Of the error of y, what lies outside the span of the coordinates u.
  const double left = (y - u.matmul(u.t().matmul(y))).square().sum().item<double>();
  if (left > (1 - kExplained) * varies) return {};
  const Tensor A = v.matmul(y.t()).matmul(u / s);  // in the coordinates of v
  const Tensor values = torch::linalg_eigvals(A).to(torch::kComplexDouble).contiguous();
  const auto* z = values.const_data_ptr<c10::complex<double>>();
  std::complex<double> out = 0;
  // Of a conjugate pair, the upper one.
  for (int64_t i = 0; i < rank; ++i)
    if (const std::complex<double> value(z[i].real(), z[i].imag());
        std::abs(value) > std::abs(out) - 1e-12 && value.imag() > -1e-9)
      out = value;
  return out;
}

}  // namespace lrnn::experiments
