#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/random.h"
#include "compile/plan/representation.h"

// Cartan and Dieudonne: an orthogonal M is a product of rank(I - M) reflections and of no fewer.
namespace lrnn::compile {
namespace {

using Matrix = std::vector<double>;
constexpr double kZero = 1e-9;

double rounded(double x) { return static_cast<double>(static_cast<float>(x)); }

Matrix identity_matrix(size_t n) {
  Matrix out(n * n, 0);
  for (size_t i = 0; i < n; ++i) out[i * n + i] = 1;
  return out;
}

// M <- (I - 2 v v^T) M
void reflect(Matrix& m, const std::vector<double>& v) {
  const size_t n = v.size();
  for (size_t c = 0; c < n; ++c) {
    double s = 0;
    for (size_t i = 0; i < n; ++i) s += v[i] * m[i * n + c];
    for (size_t i = 0; i < n; ++i) m[i * n + c] -= 2 * s * v[i];
  }
}

double distance(const Matrix& a, const Matrix& b) {
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) out = std::max(out, std::abs(a[i] - b[i]));
  return out;
}

void normalise(std::vector<double>& v) {
  double s = 0;
  for (const double x : v) s += x * x;
  for (double& x : v) x /= std::sqrt(s);
}

// What the roots are once float32 has rounded them, multiplied out. The first is applied first.
double rounding_error(const std::vector<std::vector<double>>& roots, const Matrix& m, size_t n) {
  Matrix product = identity_matrix(n);
  for (auto v : roots) {
    for (double& x : v) x = rounded(x);
    reflect(product, v);
  }
  return distance(product, m);
}

// 2 I - W - W^T = (W - I)^T (W - I)
Eigen turned(const Matrix& w, size_t n) {
  Matrix s(n * n, 0);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) s[i * n + j] = (i == j ? 2 : 0) - w[i * n + j] - w[j * n + i];
  return eigen_of(std::move(s), static_cast<int64_t>(n));
}

std::vector<std::vector<double>> factors(const Matrix& m, size_t n) {
  std::vector<std::vector<double>> out;
  Matrix w = m;
  while (distance(w, identity_matrix(n)) > kZero && out.size() < n) {
    const auto e = turned(w, n);
    const double* x = &e.vectors[(n - 1) * n];
    std::vector<double> v(n, 0);
    for (size_t i = 0; i < n; ++i) {
      v[i] = -x[i];
      for (size_t j = 0; j < n; ++j) v[i] += w[i * n + j] * x[j];
    }
    normalise(v);
    reflect(w, v);
    out.push_back(std::move(v));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

// A plane rotation leaves the first of its two reflections free within the plane: among many, the
// pair that float32 holds best. Keys longer than 1 would let the state grow.
std::vector<std::vector<double>> best_pair(const std::vector<std::vector<double>>& pair,
                                           const Matrix& m, size_t n, int draws) {
  // An orthonormal basis of the plane, and the angle between the two roots in it.
  const auto &u = pair[0], &v = pair[1];
  double c = 0;
  for (size_t i = 0; i < n; ++i) c += u[i] * v[i];
  std::vector<double> w(n);
  for (size_t i = 0; i < n; ++i) w[i] = v[i] - c * u[i];
  double s = 0;
  for (const double x : w) s += x * x;
  s = std::sqrt(s);
  for (double& x : w) x /= s;
  const double half = std::atan2(s, c);
  auto best = pair;
  double least = rounding_error(pair, m, n);
  Random random(9, 2, n);
  const auto length = [](const std::vector<double>& k) {
    double out = 0;
    for (const double x : k) out += rounded(x) * rounded(x);
    return out;
  };
  for (int draw = 0; draw < draws; ++draw) {
    const double phi = random.uniform() * 2 * std::numbers::pi;
    std::vector<std::vector<double>> keys(2, std::vector<double>(n));
    for (size_t i = 0; i < n; ++i) {
      keys[0][i] = std::cos(phi) * u[i] + std::sin(phi) * w[i];
      keys[1][i] = std::cos(phi + half) * u[i] + std::sin(phi + half) * w[i];
    }
    if (length(keys[0]) > 1 || length(keys[1]) > 1) continue;
    const double error = rounding_error(keys, m, n);
    if (error < least) least = error, best = keys;
  }
  return best;
}

}  // namespace

std::vector<Householder> reflections_of(const std::vector<double>& matrix, int64_t dim, int draws,
                                        double* residual) {
  const auto n = static_cast<size_t>(dim);
  auto roots = factors(matrix, n);
  if (roots.size() == 2) roots = best_pair(roots, matrix, n, draws);
  *residual = rounding_error(roots, matrix, n);
  std::vector<Householder> out;
  for (auto& r : roots) {
    for (double& x : r) x = rounded(x);
    out.push_back({std::move(r), 2});
  }
  return out;
}

double largest_turn(const std::vector<double>& matrix, int64_t dim) {
  const auto e = turned(matrix, static_cast<size_t>(dim));
  return 2 * std::asin(std::min(1.0, std::sqrt(std::max(0.0, e.values.back())) / 2));
}

}  // namespace lrnn::compile
