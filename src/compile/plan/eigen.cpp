#include <algorithm>
#include <cmath>
#include <numeric>

#include "compile/plan/representation.h"

namespace lrnn::compile {

Eigen eigen_of(std::vector<double> a, int64_t size) {
  const auto n = static_cast<size_t>(size);
  std::vector<double> v(n * n, 0);
  for (size_t i = 0; i < n; ++i) v[i * n + i] = 1;
  // Rows p and q of both; the columns of the symmetric one mirror its rows.
  const auto rotate = [&](std::vector<double>& m, size_t p, size_t q, double c, double s) {
    for (size_t i = 0; i < n; ++i) {
      const double x = m[p * n + i], y = m[q * n + i];
      m[p * n + i] = c * x - s * y, m[q * n + i] = s * x + c * y;
    }
  };
  const auto columns = [&](size_t p, size_t q, double c, double s) {
    for (size_t i = 0; i < n; ++i) {
      const double x = a[i * n + p], y = a[i * n + q];
      a[i * n + p] = c * x - s * y, a[i * n + q] = s * x + c * y;
    }
  };
  double scale = 0;
  for (const double x : a) scale = std::max(scale, std::abs(x));
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0;
    for (size_t p = 0; p < n; ++p)
      for (size_t q = p + 1; q < n; ++q) off = std::max(off, std::abs(a[p * n + q]));
    if (off <= 1e-15 * scale) break;
    for (size_t p = 0; p < n; ++p)
      for (size_t q = p + 1; q < n; ++q) {
        const double x = a[p * n + q];
        if (std::abs(x) <= 1e-17 * scale) continue;
        const double theta = (a[q * n + q] - a[p * n + p]) / (2 * x);
        const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::hypot(theta, 1.0));
        const double c = 1 / std::hypot(t, 1.0), s = t * c;
        rotate(a, p, q, c, s), columns(p, q, c, s), rotate(v, p, q, c, s);
      }
  }
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t i, size_t j) { return a[i * n + i] < a[j * n + j]; });
  Eigen out;
  for (const size_t k : order) {
    out.values.push_back(a[k * n + k]);
    out.vectors.insert(out.vectors.end(), v.begin() + static_cast<std::ptrdiff_t>(k * n),
                       v.begin() + static_cast<std::ptrdiff_t>((k + 1) * n));
  }
  return out;
}

}  // namespace lrnn::compile
