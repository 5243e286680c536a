#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "automata/plan_parts.h"
#include "automata/representation.h"

namespace lrnn::automata {
namespace {

using Vector = std::array<double, 2>;
using Matrix = std::vector<double>;  // 2 x 2, row by row
constexpr int64_t kMostElements = 200;

size_t at(int64_t i) { return static_cast<size_t>(i); }

Matrix times(const Matrix& a, const Matrix& b) {
  return {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
          a[2] * b[1] + a[3] * b[3]};
}
Vector times(const Matrix& a, const Vector& v) {
  return {a[0] * v[0] + a[1] * v[1], a[2] * v[0] + a[3] * v[1]};
}
double determinant(const Matrix& m) { return m[0] * m[3] - m[1] * m[2]; }

const Matrix& flip(int64_t e) {
  static const Matrix powers[2] = {{1, 0, 0, 1}, {1, 0, 0, -1}};
  return powers[e];
}

double angle_between(const Vector& a, const Vector& b) {
  return std::abs(std::atan2(a[0] * b[1] - a[1] * b[0], a[0] * b[0] + a[1] * b[1]));
}

// A faithful group of plane matrices among the irreducible ones; none when there is none.
std::optional<Irrep> plane_matrices(const PermutationGroup& group) {
  SignedAction regular{group.order(), {}, {}};
  for (int64_t g = 0; g < group.order(); ++g) {
    Permutation image;
    for (int64_t c = 0; c < group.order(); ++c)
      image.push_back(static_cast<int>(group.product(c, g)));
    regular.image.push_back(std::move(image));
    regular.sign.emplace_back(at(group.order()), 1);
  }
  for (auto& irrep : irreps_in(group, regular)) {
    if (irrep.dim != 2) continue;
    const auto trivial = [](const Matrix& m) { return m[0] + m[3] > 2 - 1e-6; };
    if (std::count_if(irrep.matrices.begin(), irrep.matrices.end(), trivial) == 1) return irrep;
  }
  return std::nullopt;
}

std::vector<DihedralPlan::Point> orbit(const Automaton& a, const PermutationGroup& group,
                                       const Irrep& irrep, const Vector& start) {
  std::vector<DihedralPlan::Point> out;
  for (int64_t g = 0; g < group.order(); ++g)
    for (int64_t e = 0; e < 2; ++e)
      out.push_back(
          {e, group.element(g)[at(a.start)], times(flip(e), times(irrep.matrices[at(g)], start))});
  return out;
}

// Half the least angle between points that stand for different states.
double margin_of(const std::vector<DihedralPlan::Point>& points) {
  double out = std::numbers::pi;
  for (const auto& p : points)
    for (const auto& q : points)
      if (p.e == q.e && p.state != q.state) out = std::min(out, angle_between(p.at, q.at) / 2);
  return out;
}

}  // namespace

std::optional<DihedralPlan> dihedral_plan(const Automaton& a) {
  std::vector<Permutation> letters;
  for (int64_t x = 0; x < a.symbols; ++x) letters.push_back(a.letter(x));
  if (StabiliserChain(a.states, letters).order() > static_cast<double>(kMostElements))
    return std::nullopt;
  const PermutationGroup group(a.states, letters);
  const auto irrep = plane_matrices(group);
  if (!irrep) return std::nullopt;

  DihedralPlan out;
  for (const auto& p : letters) {
    const int64_t g = group.find(p);
    const auto& m = irrep->matrices[at(g)];
    const bool rotation = determinant(m) > 0;
    out.letters.push_back(g == 0     ? DihedralPlan::kStay
                          : rotation ? DihedralPlan::kRotation
                                     : DihedralPlan::kReflection);
    out.steps.emplace_back();
    for (int64_t e = 0; e < 2 && g != 0; ++e) {
      const auto step = times(times(flip(e), m), flip(rotation ? 1 - e : e));
      double residual = 0;
      out.steps.back()[at(e)] = reflections_of(step, 2, &residual).at(0);
      out.residual = std::max(out.residual, residual);
    }
  }
  // Where the start lies between the mirrors decides how far apart the states are.
  constexpr int kAngles = 720;
  for (int i = 0; i < kAngles; ++i) {
    const double phi = 2 * std::numbers::pi * i / kAngles;
    const Vector start = {std::cos(phi), std::sin(phi)};
    auto points = orbit(a, group, *irrep, start);
    const double margin = margin_of(points);
    if (margin <= out.margin) continue;
    out.margin = margin, out.start = start, out.points = std::move(points);
  }
  if (out.margin < 1e-4) return std::nullopt;
  return out;
}

}  // namespace lrnn::automata
