#include <algorithm>
#include <cmath>

#include "automata/automaton.h"
#include "base/random.h"
#include "compile/plan/representation.h"

// A generic symmetric matrix that commutes with the action has real irreducible eigenspaces.
namespace lrnn::compile {
namespace {

// One random number per orbit of pairs of axes, with signs along the orbit.
std::vector<double> commuting_matrix(const PermutationGroup& group, const SignedAction& action) {
  const auto n = at(action.degree);
  std::vector<int64_t> generators;
  for (const auto& p : group.generators()) generators.push_back(group.find(p));
  std::vector<double> out(n * n, 0);
  std::vector<int8_t> seen(n * n, 0);  // the sign along the orbit
  Random random(3, 1, n);
  for (size_t start = 0; start < n * n; ++start) {
    if (seen[start]) continue;
    std::vector<size_t> orbit = {start};
    seen[start] = 1;
    bool cancels = false;  // a pair that comes back with the other sign
    for (size_t i = 0; i < orbit.size(); ++i)
      for (const int64_t g : generators) {
        const auto& image = action.image[at(g)];
        const auto& sign = action.sign[at(g)];
        const size_t p = orbit[i] / n, q = orbit[i] % n;
        const size_t to = at(image[p]) * n + at(image[q]);
        const auto s = static_cast<int8_t>(seen[orbit[i]] * sign[p] * sign[q]);
        if (seen[to] == 0) seen[to] = s, orbit.push_back(to);
        cancels |= seen[to] != s;
      }
    const double value = cancels ? 0 : random.uniform() - 0.5;
    for (const size_t k : orbit) out[k] = value * seen[k];
  }
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j)
      out[i * n + j] = out[j * n + i] = out[i * n + j] + out[j * n + i];
  return out;
}

// B^T M(g) B for the rows of B.
std::vector<double> restricted(const SignedAction& action, size_t g, const double* basis,
                               size_t dim) {
  const auto n = at(action.degree);
  std::vector<double> out(dim * dim, 0);
  for (size_t c = 0; c < dim; ++c)
    for (size_t i = 0; i < n; ++i) {
      const double moved = basis[c * n + i] * action.sign[g][i];
      for (size_t r = 0; r < dim; ++r)
        out[r * dim + c] += basis[r * n + at(action.image[g][i])] * moved;
    }
  return out;
}

}  // namespace

std::vector<Irrep> irreps_in(const PermutationGroup& group, const SignedAction& action) {
  constexpr double kGap = 1e-7;
  const auto n = at(action.degree);
  const auto eigen = eigen_of(commuting_matrix(group, action), action.degree);
  std::vector<Irrep> out;
  std::vector<std::vector<double>> characters;
  for (size_t begin = 0, end = 0; begin < n; begin = end) {
    for (end = begin + 1; end < n && eigen.values[end] - eigen.values[end - 1] < kGap;) ++end;
    Irrep irrep;
    irrep.dim = static_cast<int64_t>(end - begin);
    std::vector<double> character;
    for (size_t g = 0; g < action.image.size(); ++g) {
      irrep.matrices.push_back(restricted(action, g, &eigen.vectors[begin * n], end - begin));
      double trace = 0;
      for (size_t i = 0; i < end - begin; ++i)
        trace += irrep.matrices.back()[i * (end - begin) + i];
      character.push_back(trace);
    }
    const auto same = [&](const std::vector<double>& other) {
      for (size_t g = 0; g < other.size(); ++g)
        if (std::abs(other[g] - character[g]) > 1e-6) return false;
      return true;
    };
    if (std::any_of(characters.begin(), characters.end(), same)) continue;
    characters.push_back(std::move(character));
    out.push_back(std::move(irrep));
  }
  return out;
}

}  // namespace lrnn::compile
