#include "compile/plan/head.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "automata/automaton.h"
#include "base/error.h"
#include "compile/plan/representation.h"

namespace lrnn::compile {
namespace {

constexpr int64_t kIrrepOrder = 200;  // groups whose irreps come from all of their elements
constexpr int64_t kIrrepDim = 8;
constexpr int64_t kDraws = 1200000;  // for all letters of a head: 20000 each when they are few
constexpr double kForever = std::numeric_limits<double>::infinity();

// A head that may be chosen: what it costs and what it cannot see, before its roots are worked out.
struct Candidate {
  int64_t dim = 0, householders = 0;
  Exactness exactness = Exactness::kExact;
  std::vector<uint8_t> kernel;  // per element: looks like the identity
  bool plain = false;           // a permutation without signs
  const SignedAction* action = nullptr;
  const Irrep* irrep = nullptr;
};

bool without_signs(const SignedAction& action) {
  return std::all_of(action.sign.begin(), action.sign.end(), [](const auto& s) {
    return std::all_of(s.begin(), s.end(), [](int8_t x) { return x > 0; });
  });
}

double trace_of(const std::vector<double>& m, int64_t n) {
  double out = 0;
  for (int64_t i = 0; i < n; ++i) out += m[at(i * n + i)];
  return out;
}

// The rank of I - M from the traces of the powers of M.
int64_t irrep_rank(const PermutationGroup& group, const Irrep& irrep, int64_t g) {
  double fixed = 0;
  int64_t order = 0, power = 0;
  do {
    fixed += trace_of(irrep.matrices[at(power)], irrep.dim);
    power = group.product(power, g);
    ++order;
  } while (power != 0);
  return irrep.dim - std::llround(fixed / static_cast<double>(order));
}

Candidate of_action(const SignedAction& action, const std::vector<int64_t>& letters) {
  Candidate out{action.degree, 0, Exactness::kExact, {}, without_signs(action), &action, nullptr};
  for (const int64_t g : letters)
    out.householders =
        std::max(out.householders, reflections_needed(action.image[at(g)], action.sign[at(g)]));
  for (size_t g = 0; g < action.image.size(); ++g) {
    bool same = true;
    for (size_t i = 0; i < action.image[g].size(); ++i)
      same &= action.image[g][i] == static_cast<int>(i) && action.sign[g][i] > 0;
    out.kernel.push_back(same);
  }
  return out;
}

Candidate of_irrep(const PermutationGroup& group, const Irrep& irrep,
                   const std::vector<int64_t>& letters) {
  Candidate out{irrep.dim, 0, Exactness::kDrift, {}, false, nullptr, &irrep};
  for (const int64_t g : letters)
    out.householders = std::max(out.householders, irrep_rank(group, irrep, g));
  for (const auto& m : irrep.matrices)
    out.kernel.push_back(trace_of(m, irrep.dim) > static_cast<double>(irrep.dim) - 1e-6);
  return out;
}

// Whether what none of the heads sees does not matter: it moves no tile.
bool enough(const std::vector<const Candidate*>& heads, const std::vector<uint8_t>& harmless) {
  for (size_t g = 0; g < harmless.size(); ++g) {
    if (harmless[g]) continue;
    const auto blind = [&](const Candidate* h) { return h->kernel[g] != 0; };
    if (std::all_of(heads.begin(), heads.end(), blind)) return false;
  }
  return true;
}

// Few heads with few axes: the smallest single one that is enough, or as many as it takes, without
// those that the others replace.
std::vector<const Candidate*> smallest(std::vector<const Candidate*> all,
                                       const std::vector<uint8_t>& harmless) {
  std::stable_sort(all.begin(), all.end(), [](const Candidate* p, const Candidate* q) {
    return std::pair(p->exactness, p->dim) < std::pair(q->exactness, q->dim);
  });
  for (const auto* h : all)
    if (enough({h}, harmless)) return {h};
  if (!enough(all, harmless)) return {};
  for (size_t i = all.size(); i-- > 0;) {
    auto fewer = all;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (enough(fewer, harmless)) all = std::move(fewer);
  }
  return all;
}

std::vector<double> dense(const Permutation& image, const std::vector<int8_t>& sign) {
  const size_t n = image.size();
  std::vector<double> out(n * n, 0);
  for (size_t i = 0; i < n; ++i) out[at(image[i]) * n + i] = sign[i];
  return out;
}

GroupHead exact_head(const SignedAction& action, const std::vector<int64_t>& letters) {
  GroupHead out;
  const bool plain = without_signs(action);
  out.name = cat(plain ? "permutations of " : "signed permutations of ", action.degree,
                 plain ? " points" : " axes");
  out.dim = action.degree;
  out.t_safe = kForever;
  out.steps.resize(action.image.size());
  std::map<std::vector<double>, int64_t> known;
  for (size_t g = 0; g < action.image.size(); ++g) {
    auto m = dense(action.image[g], action.sign[g]);
    const auto [found, fresh] = known.emplace(m, static_cast<int64_t>(known.size()));
    if (fresh) out.matrices.push_back(std::move(m));
    out.coset.push_back(found->second);
  }
  for (const int64_t g : letters) {
    out.steps[at(g)] = reflections_of(action.image[at(g)], action.sign[at(g)]);
    out.householders = std::max(out.householders, static_cast<int64_t>(out.steps[at(g)].size()));
  }
  return out;
}

GroupHead drift_head(const PermutationGroup& group, const Candidate& c,
                     const std::vector<int64_t>& letters) {
  const auto& irrep = *c.irrep;
  GroupHead out;
  out.name = cat("orthogonal matrices of size ", irrep.dim);
  out.dim = irrep.dim;
  out.exactness = Exactness::kDrift;
  out.copies = 1;
  out.coset.assign(irrep.matrices.size(), -1);
  out.steps.resize(irrep.matrices.size());
  out.margin = kForever;
  for (int64_t g = 0; g < group.order(); ++g) {
    if (!c.kernel[at(g)])
      out.margin = std::min(out.margin, largest_turn(irrep.matrices[at(g)], irrep.dim) / 2);
    if (out.coset[at(g)] >= 0) continue;
    for (int64_t k = 0; k < group.order(); ++k)
      if (c.kernel[at(k)])
        out.coset[at(group.product(k, g))] = static_cast<int64_t>(out.matrices.size());
    out.matrices.push_back(irrep.matrices[at(g)]);
  }
  const int draws = static_cast<int>(kDraws / static_cast<int64_t>(letters.size() + 60));
  for (const int64_t g : letters) {
    double residual = 0;
    out.steps[at(g)] = reflections_of(irrep.matrices[at(g)], irrep.dim, draws, &residual);
    out.residual = std::max(out.residual, residual);
    out.householders = std::max(out.householders, static_cast<int64_t>(out.steps[at(g)].size()));
  }
  out.t_safe = out.margin / std::max(out.residual, 1e-17);
  return out;
}

GroupPlan build(const GroupPlan& frame, const std::vector<const Candidate*>& heads) {
  GroupPlan out = frame;
  out.t_safe = kForever;
  for (const auto* c : heads) {
    out.heads.push_back(c->action ? exact_head(*c->action, frame.letters)
                                  : drift_head(frame.group, *c, frame.letters));
    const auto& h = out.heads.back();
    out.householders = std::max(out.householders, h.householders);
    if (h.exactness == Exactness::kDrift) out.exactness = Exactness::kDrift;
    out.t_safe = std::min(out.t_safe, h.t_safe);
  }
  return out;
}

std::vector<Irrep> small_irreps(const PermutationGroup& group,
                                const std::vector<SignedAction>& actions) {
  std::vector<Irrep> out;
  const auto keep = [&](std::vector<Irrep> found) {
    for (auto& irrep : found)
      if (irrep.dim <= kIrrepDim) out.push_back(std::move(irrep));
  };
  if (group.order() > kIrrepOrder) {
    if (auto plane = plane_irrep(group)) out.push_back(std::move(*plane));
    for (const auto& a : actions)
      if (a.degree <= 20) keep(irreps_in(group, a));
    return out;
  }
  SignedAction regular{group.order(), {}, {}};
  for (int64_t g = 0; g < group.order(); ++g) {
    Permutation image;
    for (int64_t c = 0; c < group.order(); ++c)
      image.push_back(static_cast<int>(group.product(c, g)));
    regular.image.push_back(std::move(image));
    regular.sign.emplace_back(at(group.order()), 1);
  }
  keep(irreps_in(group, regular));
  return out;
}

}  // namespace

std::vector<double> key_of(const Householder& h, int64_t copies) {
  double square = 0;
  for (const double x : h.root) square += x * x;
  const double length = std::sqrt(square * static_cast<double>(copies));
  std::vector<double> out;
  for (int64_t c = 0; c < copies; ++c)
    for (const double x : h.root) out.push_back(x / length);
  return out;
}

int64_t GroupPlan::decode(const std::vector<int64_t>& cosets) const {
  for (int64_t g = 0; g < group.order(); ++g) {
    bool same = true;
    for (size_t h = 0; h < heads.size() && same; ++h) same = heads[h].coset[at(g)] == cosets[h];
    if (same) return g;
  }
  return -1;
}

std::vector<GroupPlan> group_plans(int64_t points, const std::vector<Permutation>& letters,
                                   int64_t tiles, const std::vector<Permutation>& on_tiles) {
  if (automata::StabiliserChain(points, letters).order() >
      static_cast<double>(PermutationGroup::kLargest))
    return {};
  GroupPlan frame;
  frame.group = PermutationGroup(points, letters);
  std::map<Permutation, Permutation> moves;
  for (size_t i = 0; i < letters.size(); ++i) moves[letters[i]] = on_tiles[i];
  Permutation still;
  for (int64_t t = 0; t < tiles; ++t) still.push_back(static_cast<int>(t));
  frame.tiles = {still};
  for (int64_t g = 1; g < frame.group.order(); ++g)
    frame.tiles.push_back(
        automata::compose(moves.at(frame.group.generators()[at(frame.group.last(g))]),
                          frame.tiles[at(frame.group.parent(g))]));
  std::set<int64_t> distinct;
  for (const auto& p : letters) distinct.insert(frame.group.find(p));
  frame.letters.assign(distinct.begin(), distinct.end());
  std::vector<uint8_t> harmless;
  for (const auto& p : frame.tiles) harmless.push_back(p == still);

  std::vector<SignedAction> actions;
  for (auto& a : signed_actions(frame.group)) actions.push_back(with_even_signs(std::move(a)));
  const auto irreps = small_irreps(frame.group, actions);
  std::vector<Candidate> candidates;
  for (const auto& a : actions) candidates.push_back(of_action(a, frame.letters));
  for (const auto& i : irreps) candidates.push_back(of_irrep(frame.group, i, frame.letters));

  std::vector<GroupPlan> out;
  for (const bool drift : {false, true})
    for (int64_t k = 1; k < (out.empty() ? points + 1 : out[0].householders); ++k) {
      std::vector<const Candidate*> within;
      for (const auto& c : candidates)
        if (c.householders <= k && (drift || c.exactness == Exactness::kExact))
          within.push_back(&c);
      // Rows of a plain permutation are one-hot, which makes them the easiest to read.
      auto plain = within;
      std::erase_if(plain, [](const Candidate* c) { return !c->plain; });
      auto heads = smallest(plain, harmless);
      if (heads.empty()) heads = smallest(within, harmless);
      if (heads.empty()) continue;
      out.push_back(build(frame, heads));
      break;
    }
  return out;
}

}  // namespace lrnn::compile
