#include <cmath>
#include <numbers>

#include "automata/automaton.h"
#include "compile/plan/representation.h"

namespace lrnn::compile {
namespace {

// [r^k] or [r^k, s r^k] for every k, when r and s make the whole group so.
std::vector<std::vector<int64_t>> turns_and_mirrors(const PermutationGroup& group, int64_t r) {
  std::vector<std::vector<int64_t>> out(1);
  std::vector<uint8_t> seen(at(group.order()), 0);
  for (int64_t g = 0; !seen[at(g)]; g = group.product(g, r)) seen[at(g)] = 1, out[0].push_back(g);
  const auto n = static_cast<int64_t>(out[0].size());
  if (n == group.order()) return out;
  int64_t s = 0;
  while (seen[at(s)]) ++s;
  // s turns every rotation round: s r s r = 1, and s s = 1.
  const int64_t sr = group.product(s, r);
  if (2 * n != group.order() || group.product(s, s) != 0 || group.product(sr, sr) != 0) return {};
  out.emplace_back();
  for (const int64_t g : out[0]) out[1].push_back(group.product(s, g));
  return out;
}

}  // namespace

std::optional<Irrep> plane_irrep(const PermutationGroup& group) {
  const int64_t order = group.order();
  if (order < 3) return std::nullopt;
  for (int64_t r = 1; r < order; ++r) {
    const int64_t n = group.element_order(r);
    if (n < 3 || (n != order && 2 * n != order)) continue;
    const auto parts = turns_and_mirrors(group, r);
    if (parts.empty()) continue;
    Irrep out{2, std::vector<std::vector<double>>(at(order))};
    for (size_t k = 0; k < parts[0].size(); ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
      const double c = std::cos(angle), s = std::sin(angle);
      out.matrices[at(parts[0][k])] = {c, -s, s, c};
      // The mirror diag(1, -1) first, then the rotation.
      if (parts.size() > 1) out.matrices[at(parts[1][k])] = {c, s, s, -c};
    }
    return out;
  }
  return std::nullopt;
}

}  // namespace lrnn::compile
