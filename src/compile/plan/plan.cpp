#include "compile/plan/plan.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace lrnn::compile {
namespace {

constexpr double kAlways = std::numeric_limits<double>::infinity();

bool has_groups(const Component& c) {
  return std::any_of(c.groups.begin(), c.groups.end(), [](const auto& g) { return g.has_value(); });
}

std::string summary_of(const Plan& plan) {
  std::string out;
  for (const auto& c : plan.components) {
    if (!c.group_only && c.cascade->levels() > 0)
      out += cat(out.empty() ? "" : " + ", levels_text(levels_of(*c.cascade)));
    for (const auto& g : c.groups)
      for (size_t h = 0; c.group_only && g && h < g->heads.size(); ++h)
        out += cat(out.empty() ? "" : " + ", g->heads[h].name);
  }
  return out;
}

Plan from_components(PlanKind kind, std::vector<Component> components) {
  Plan out;
  out.kind = kind;
  out.householders = 1;
  out.t_safe = kAlways;
  for (const auto& c : components) {
    out.layers = std::max(out.layers, c.layers());
    out.householders = std::max(out.householders, householders_of(c));
    out.negative |= has_groups(c);
    if (exactness_of(c) == Exactness::kDrift) out.exactness = Exactness::kDrift;
    out.t_safe = std::min(out.t_safe, t_safe_of(c));
  }
  out.components = std::move(components);
  out.summary = summary_of(out);
  return out;
}

PlanKind kind_of(const Component& c) {
  if (c.automaton.states == 1) return PlanKind::kConstant;
  if (c.group_only) return PlanKind::kGroup;
  return c.cascade->levels() == 1 && !has_groups(c) ? PlanKind::kFlipFlop : PlanKind::kHolonomy;
}

Plan definite(DefinitePlan d) {
  Plan out;
  out.kind = PlanKind::kDefinite;
  out.layers = out.householders = 1;
  out.t_safe = kAlways;
  out.summary = cat("the last ", d.k, " letters");
  out.definite = std::move(d);
  return out;
}

Plan dihedral(DihedralPlan d) {
  Plan out;
  out.kind = PlanKind::kDihedral;
  out.layers = 2, out.householders = 1;
  out.negative = true;
  out.exactness = Exactness::kDrift;
  out.t_safe = d.margin / std::max(d.residual, 1e-17);
  out.summary =
      cat(d.points.size() / 2, " plane rotations and reflections, one reflection per token");
  out.dihedral = std::move(d);
  return out;
}

// At least as good in everything that limits are about.
bool replaces(const Plan& p, const Plan& q) {
  return p.layers <= q.layers && p.householders <= q.householders && p.negative <= q.negative &&
         p.exactness <= q.exactness;
}

}  // namespace

std::string name_of(PlanKind kind) {
  switch (kind) {
    case PlanKind::kConstant: return "constant";
    case PlanKind::kFlipFlop: return "flip-flop";
    case PlanKind::kGroup: return "group";
    case PlanKind::kParallel: return "parallel";
    case PlanKind::kDefinite: return "definite";
    case PlanKind::kDihedral: return "dihedral";
    case PlanKind::kHolonomy: break;
  }
  return "holonomy";
}

bool Plan::has_levels() const {
  return std::any_of(components.begin(), components.end(),
                     [](const Component& c) { return !c.group_only && c.cascade->levels() > 0; });
}

int64_t Plan::state_of(const std::vector<int64_t>& blocks) const {
  const auto states = components.empty() ? 0 : components[0].block.size();
  for (size_t s = 0; s < states; ++s) {
    bool same = true;
    for (size_t c = 0; c < components.size() && same; ++c)
      same = components[c].block[s] == blocks[c];
    if (same) return static_cast<int64_t>(s);
  }
  return -1;
}

std::vector<Plan> plans(const Automaton& a, const Class& c,
                        std::shared_ptr<const Cascade> cascade) {
  std::vector<Plan> all;
  for (auto& whole : components_of(a, cascade)) {
    const auto kind = kind_of(whole);
    all.push_back(from_components(kind, {std::move(whole)}));
    // A model has at least one layer, even if there is nothing to do in it.
    if (kind == PlanKind::kConstant) all.back().layers = 1;
  }
  if (!c.group && a.states > 1)
    for (auto& parts : parallel_components(a))
      if (parts.size() > 1) all.push_back(from_components(PlanKind::kParallel, std::move(parts)));
  if (c.definite)
    if (auto d = definite_plan(a, *c.definite)) all.push_back(definite(std::move(*d)));
  if (c.group && a.states > 2)
    if (auto d = dihedral_plan(a)) all.push_back(dihedral(std::move(*d)));
  std::stable_sort(all.begin(), all.end(), [](const Plan& p, const Plan& q) {
    return std::tuple(p.layers, p.householders, p.exactness, p.negative) <
           std::tuple(q.layers, q.householders, q.exactness, q.negative);
  });
  std::vector<Plan> out;
  for (auto& p : all)
    if (std::none_of(out.begin(), out.end(), [&](const Plan& q) { return replaces(q, p); }))
      out.push_back(std::move(p));
  return out;
}

bool Limits::fits(const Plan& plan) const {
  return (!householders || plan.householders <= *householders) &&
         (!layers || plan.layers <= *layers) && (negative || !plan.negative) &&
         (drift || plan.exactness == Exactness::kExact);
}

const Plan& choose(const std::vector<Plan>& plans, const Limits& limits) {
  for (const auto& p : plans)
    if (limits.fits(p)) return p;
  if (plans.empty())
    throw Error("no plan was found: a group of this automaton is too large to list",
                "`lrnn check` says what the theorems grant");
  std::string hint = "plans:";
  for (const auto& p : plans)
    hint += cat(&p == &plans[0] ? " " : ", or ", "--layers ", p.layers, " --householders ",
                p.householders, p.negative ? " --range -11" : "",
                p.exactness == Exactness::kDrift ? " --drift" : "");
  throw Error("no plan fits these limits", hint);
}

}  // namespace lrnn::compile
