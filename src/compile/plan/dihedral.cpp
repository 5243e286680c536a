#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "automata/automaton.h"
#include "compile/plan/plan.h"
#include "compile/plan/representation.h"

namespace lrnn::compile {
namespace {

using Vector = std::array<double, 2>;
using Matrix = std::vector<double>;  // 2 x 2, row by row
constexpr int64_t kMostElements = 1000;

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

std::vector<DihedralPlan::Point> orbit(const Automaton& a, const PermutationGroup& group,
                                       const Irrep& irrep, const Vector& start) {
  std::vector<DihedralPlan::Point> out;
  for (int64_t g = 0; g < group.order(); ++g)
    for (int64_t e = 0; e < 2; ++e)
      out.push_back(
          {e, group.element(g)[at(a.start)], times(flip(e), times(irrep.matrices[at(g)], start))});
  return out;
}

// Half the least angle between points that stand for different states. Round the circle the nearest
// one with another state is the next one, or several of the same state lie between.
double margin_of(const std::vector<DihedralPlan::Point>& points) {
  double out = std::numbers::pi;
  for (int64_t e = 0; e < 2; ++e) {
    std::vector<std::pair<double, int64_t>> circle;
    for (const auto& p : points)
      if (p.e == e) circle.emplace_back(std::atan2(p.at[1], p.at[0]), p.state);
    std::sort(circle.begin(), circle.end());
    for (size_t i = 0; i < circle.size(); ++i) {
      const auto& [angle, state] = circle[i];
      const auto& [next, other] = circle[(i + 1) % circle.size()];
      const double turn = next - angle + (i + 1 == circle.size() ? 2 * std::numbers::pi : 0);
      if (state != other) out = std::min(out, turn / 2);
    }
  }
  return out;
}

}  // namespace

std::optional<DihedralPlan> dihedral_plan(const Automaton& a) {
  std::vector<Permutation> letters;
  for (int64_t x = 0; x < a.symbols; ++x) letters.push_back(a.letter(x));
  if (automata::StabiliserChain(a.states, letters).order() > static_cast<double>(kMostElements))
    return std::nullopt;
  const PermutationGroup group(a.states, letters);
  const auto irrep = plane_irrep(group);
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
      out.steps.back()[at(e)] = reflections_of(step, 2, 0, &residual).at(0);
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

}  // namespace lrnn::compile
