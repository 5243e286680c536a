#include "compile/group_layer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/random.h"

namespace lrnn::compile {
namespace {

// M^T z
std::vector<double> turned(const GroupHead& head, int64_t coset, const std::vector<double>& z) {
  const auto& m = head.matrices[size_t(coset)];
  const auto dim = size_t(head.dim);
  std::vector<double> out(dim);
  for (size_t i = 0; i < dim; ++i)
    for (size_t j = 0; j < dim; ++j) out[i] += m[j * dim + i] * z[j];
  return out;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i) out += a[i] * b[i];
  return out;
}

// How far z is from the nearest of its images, as a share of its squared length.
double spread(const GroupHead& head, const std::vector<double>& z) {
  double nearest = -1e300;
  for (size_t c = 0; c < head.matrices.size(); ++c)
    if (int64_t(c) != head.coset[0])
      nearest = std::max(nearest, dot(z, turned(head, int64_t(c), z)));
  return head.matrices.size() < 2 ? 1 : 1 - nearest / dot(z, z);
}

// 1, 2, 3, … for signed permutations: all its images have other coordinates, and all of them are
// integers. Otherwise the best of some random directions.
std::vector<double> choose_query(const GroupHead& head) {
  std::vector<double> best;
  for (int64_t i = 0; i < head.dim; ++i) best.push_back(double(i + 1));
  if (head.exactness == Exactness::kExact) return best;
  double most = -1;
  Random random(7, 0, 0);
  const int64_t tries = std::clamp<int64_t>(200000 / int64_t(head.matrices.size() + 1), 20, 2000);
  for (int64_t t = 0; t < tries; ++t) {
    std::vector<double> z;
    // Positive, so that SiLU can pass it.
    for (int64_t i = 0; i < head.dim; ++i) z.push_back(0.02 + random.uniform());
    const double length = std::sqrt(dot(z, z));
    for (auto& x : z) x = std::round(x / length * 1024) / 1024;
    if (const double s = spread(head, z); s > most) most = s, best = z;
  }
  return best;
}

// Coordinates of drifting heads are at most 1 and need all the digits that the offset leaves.
double scale_of(const GroupHead& head) {
  return head.exactness == Exactness::kExact ? 1 : kReadScale;
}
double offset_of(const GroupHead& head) {
  return head.exactness == Exactness::kExact ? read_offset(head.dim) : kReadOffset;
}

Head head_of(const GroupHead& h, const std::vector<double>& z, const std::vector<Turn>& turns) {
  Head out;
  out.rows = h.copies * h.dim, out.cols = h.dim;
  out.query.assign(size_t(out.rows), 0);
  std::copy(z.begin(), z.end(), out.query.begin());
  out.start.assign(size_t(out.rows * out.cols), 0);
  for (int64_t r = 0; r < out.rows; ++r) out.start[size_t(r * out.cols + r % h.dim)] = 1;
  for (const auto& turn : turns) {
    Action action{turn.feature, {}, turn.element};
    for (const auto& s : h.steps[size_t(turn.element)]) {
      Step step{{}, s.beta};
      for (int64_t c = 0; c < h.copies; ++c)
        step.key.insert(step.key.end(), s.root.begin(), s.root.end());
      action.steps.push_back(std::move(step));
    }
    if (!action.steps.empty()) out.actions.push_back(std::move(action));
  }
  return out;
}

}  // namespace

GroupReading::GroupReading(Network& net, int64_t at, const GroupPlan& plan,
                           const std::vector<Turn>& turns, const std::string& name)
    : plan_(plan) {
  std::vector<std::vector<double>> z;  // per head
  for (size_t h = 0; h < plan.heads.size(); ++h) {
    const auto& head = plan.heads[h];
    z.push_back(choose_query(head));
    Head made = head_of(head, z.back(), turns);
    made.scale = scale_of(head);
    made.group = &head, made.plan = &plan;
    for (int64_t i = 0; i < head.dim; ++i) {
      offsets_.push_back(offset_of(head));
      made.to.push_back(net.add(cat(name, " head ", h + 1, " column ", i + 1), offsets_.back()));
      features_.push_back(made.to.back());
    }
    net.layer(at).heads.push_back(std::move(made));
  }
  std::set<std::vector<int64_t>> seen;
  for (int64_t g = 0; g < plan.group.order(); ++g) {
    std::vector<int64_t> cosets;
    for (const auto& h : plan.heads) cosets.push_back(h.coset[size_t(g)]);
    if (!seen.insert(cosets).second) continue;
    elements_.push_back(g);
    phi_[g] = compute(g, z);
    for (size_t i = 0; i < features_.size(); ++i) {
      double& most = net.features[size_t(features_[i])].most;
      most = std::max(phi_.size() == 1 ? 0 : most, std::abs(phi_[g][i]));
    }
  }
  for (size_t i = 0; i < features_.size(); ++i) {
    mean_.push_back(0);
    for (const auto& [g, p] : phi_) mean_.back() += p[i];
    mean_.back() /= double(phi_.size());
  }
  const auto& own = phi_.at(elements_[0]);
  lead_ = dot(own, own);
  for (const int64_t g : elements_)
    if (g != elements_[0]) lead_ = std::min(lead_, dot(own, own) - dot(own, phi_.at(g)));
  gap_ = std::exp2(std::floor(std::log2(lead_)));
}

void GroupReading::centre(Network& net) {
  for (size_t i = 0; i < features_.size(); ++i) {
    double most = 0;
    for (const auto& [g, p] : phi_) most = std::max(most, std::abs(p[i] - mean_[i]));
    auto& f = net.features[size_t(features_[i])];
    f.offset = offsets_[i] = -mean_[i], f.most = most;
  }
}

double GroupReading::reach() const {
  double out = 0;
  for (const auto& [g, p] : phi_) {
    double sum = 0;
    for (size_t i = 0; i < p.size(); ++i) sum += std::abs(p[i] + offsets_[i]);
    out = std::max(out, sum);
  }
  return out;
}

std::vector<double> GroupReading::compute(int64_t g,
                                          const std::vector<std::vector<double>>& z) const {
  std::vector<double> out;
  for (size_t h = 0; h < z.size(); ++h) {
    const auto& head = plan_.heads[h];
    for (const double x : turned(head, head.coset[size_t(g)], z[h]))
      out.push_back(scale_of(head) * x);
  }
  return out;
}

Form GroupReading::likeness(int64_t g) const {
  Form out;
  const auto& p = phi_.at(g);
  // The offset is the mean: taking it off as a constant leaves none.
  for (size_t i = 0; i < p.size(); ++i)
    out.add(Form{{{features_[i], 1}}, offsets_[i]}, p[i] + offsets_[i]);
  return out;
}

Form GroupReading::holds(int64_t g) const {
  // Small weights read better, so the mean goes where it leaves them exact.
  bool exact = true;
  for (const double m : mean_) exact &= std::abs(m * 8 - std::round(m * 8)) < 1e-9;
  Form out;
  const auto& p = phi_.at(g);
  double own = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double weight = exact ? p[i] - std::round(mean_[i] * 8) / 8 : p[i];
    out.add(features_[i], weight / gap_);
    own += weight * p[i];
  }
  out.constant = 1 - own / gap_;
  return out;
}

void GroupReading::hold(int64_t g, double* x) const {
  const auto& p = phi_.at(g);
  for (size_t i = 0; i < p.size(); ++i) x[features_[i]] = offsets_[i] + p[i];
}

int64_t GroupReading::tile(int64_t g, int64_t y) const { return plan_.tiles[size_t(g)][size_t(y)]; }

std::optional<GroupReading::Stairs> GroupReading::stairs(int64_t y) const {
  if (plan_.exactness != Exactness::kExact) return std::nullopt;
  for (size_t i = 0; i < features_.size(); ++i) {
    std::map<double, int64_t> tile_at;
    bool one = true;
    for (const int64_t g : elements_)
      one &= tile_at.emplace(phi_.at(g)[i], tile(g, y)).first->second == tile(g, y);
    if (!one) continue;
    Stairs out{
        features_[i], tile_at.begin()->first, tile_at.rbegin()->first, tile_at.begin()->second, {},
        1e300};
    double before = out.lowest;
    int64_t now = out.first;
    for (const auto& [value, r] : tile_at) {
      if (r != now) out.bounds.emplace_back((before + value) / 2, r);
      if (r != now) out.margin = std::min(out.margin, (value - before) / 2);
      before = value, now = r;
    }
    return out;
  }
  return std::nullopt;
}

}  // namespace lrnn::compile
