#include "compile/margin.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "compile/compile.h"
#include "compile/errors.h"
#include "compile/scales.h"

namespace lrnn::compile {
namespace {

using torch::Tensor;

constexpr double kLogitSlack = 8;  // a saturated sigmoid stays saturated
constexpr double kGateSlack = 46;  // an open gate stays open, a closed one closed

// What moved weights do to the steps of a head: how far keys turn, and what is added to the logits
// of its step sizes and to its values.
struct Moved {
  double key, logit, value;
};

// Follows the errors of weights that all moved by `delta` through a model, once.
class Walk {
 public:
  Walk(const Compiled& c, double delta, int64_t length)
      : c_(c),
        net_(c.built->network),
        errors_(net_, c.weights.tensors, delta),
        delta_(delta),
        length_(double(length)),
        root_(std::sqrt(double(net_.key_dim()))),
        fla_(c.options.profile == Profile::kFla) {}

  // The part that may fail; empty when none does.
  std::string breaks() {
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      const std::string name = cat("model.layers.", i, ".");
      if (!heads(name + "attn", net_.layers[i])) return cat("the heads of layer ", i + 1);
      if (net_.gates() > 0 && !gates(name + "mlp", net_.layers[i]))
        return cat("the gates of layer ", i + 1);
    }
    return answers() ? "" : "the answers";
  }

 private:
  // How far a key or query is turned when its entries before the norm are off by this much. One
  // feature makes all of its entries, so that its size, off by `resized`, matters to SiLU only.
  double turned(const Off& off, int64_t h, double resized) const {
    const Tensor error = (off.shared + off.moved).view({-1, net_.heads(), net_.key_dim()});
    const double most = root_ * largest(error.select(1, h));
    if (resized == 0) return 4 * kUlp + 2 * most / kKey;
    constexpr double kSlope = 1.1, kEntry = 0.8;  // the largest of SiLU, and of what it is given
    return 4 * kUlp + 2 * kSlope * (most + kEntry * root_ * resized) / kFlaKey;
  }

  // The same of the key of one row: its other rows are 0, and its own has size 1 in any case.
  double leaked(const Off& off, int64_t h) const {
    const int64_t K = net_.key_dim();
    const Tensor error = (off.shared + off.moved).view({-1, net_.heads(), K});
    return K == 1 ? 0 : 2 * root_ * largest(error.select(1, h).slice(1, 1, K)) / kKey;
  }

  bool heads(const std::string& name, const Layer& layer) {
    const int64_t H = net_.heads(), V = net_.value_dim();
    const Input x = errors_.normed(name + "_norm");
    const Off q = errors_.product(name + ".q_proj", x), k = errors_.product(name + ".k_proj", x);
    const Tensor v = errors_.product(name + ".v_proj", x).all().view({-1, H, V});
    const Off b = errors_.product(name + ".b_proj", x);
    const double resized = delta_ / largest(errors_.weight(name + ".o_norm")) + 8 * kUlp;
    const double resized_logit = 200 * (x.scaled[0] / x.most[0]).item<double>();
    const double facts = fla_ ? largest((x.scaled / x.most.clamp_min(1e-300)) * (x.most > 0)) : 0;
    double read = 0;  // by the output projection, in all
    std::vector<Source> sources;
    for (int64_t h = 0; h < int64_t(layer.heads.size()); ++h) {
      const Head& head = layer.heads[size_t(h)];
      const auto of_head = [&](const Tensor& rows) {
        return largest(rows.view({-1, H}).select(1, h));
      };
      if (of_head(b.all()) > kLogitSlack) return false;
      // Step sizes between 0 and the largest do not depend on the size of facts.
      const Moved m{head.one_row ? leaked(k, h) : turned(k, h, facts),
                    of_head(b.shared + b.moved + b.rounding) + resized_logit,
                    largest(v.select(1, h)) / kStateUnit};
      const double size = size_of(head), wrong = state_error(head, m);
      double length = 0;
      for (const double z : head.query) length += z * z;
      const double error =
          head.scale * std::sqrt(length) * (wrong + (turned(q, h, 0) + resized) * (size + wrong));
      read += double(V) * kOutputUnit * (size + wrong) / root_;
      take(head, error, sources);
    }
    errors_.add(sources, delta_ * read);
    return true;
  }

  // What is read of a head is off by `error`: as a vector, or, of one row, each column.
  void take(const Head& head, double error, std::vector<Source>& sources) {
    if (net_.gates() == 0) {
      direct_ = std::hypot(direct_, error);
      return;
    }
    double step = 0;  // the residual stream rounds
    for (const int64_t f : head.to) {
      const auto& feature = net_.features[size_t(f)];
      step = std::max(step, 2 * kUlp * (feature.offset + feature.most));
      if (head.one_row) errors_.add(f, stream_unit(feature) * (error + step));
    }
    if (head.one_row || head.to.empty()) return;
    const double unit = stream_unit(net_.features[size_t(head.to[0])]);
    error += step * std::sqrt(double(head.to.size()));
    sources.push_back({torch::tensor(head.to), true, unit * error});
  }

  // The length of the longest vector that the state can be, or make of a vector of length 1.
  double size_of(const Head& head) const {
    if (head.group) return std::sqrt(double(head.group->copies));
    double out = 1;
    for (const int64_t f : head.to)
      if (head.one_row) out = std::max(out, net_.features[size_t(f)].most / head.scale);
    for (int64_t c = 0; c < head.cols; ++c) {
      double square = 0;
      for (int64_t r = 0; r < head.rows; ++r)
        square += std::pow(head.start[size_t(r * head.cols + c)], 2);
      out = std::max(out, std::sqrt(square));
    }
    return out;
  }

  // What the state may be off by after any word up to the length: as a matrix, or each column.
  double state_error(const Head& head, const Moved& m) const {
    const double most = c_.options.limits.negative ? 2 : 1, size = size_of(head);
    const double columns = head.one_row ? 1 : std::sqrt(double(head.cols));
    const double soft = most / 4 * m.logit;  // of a step size that is neither 0 nor the largest
    const double rounding = (root_ * root_ + 4) * kUlp;
    double least = most, strength = 0;
    bool reflects = true;
    size_t steps = 0;
    for (const auto& action : head.actions) {
      steps = std::max(steps, action.steps.size());
      for (const auto& s : action.steps) {
        least = std::min(least, s.beta), reflects &= s.beta == 2;
        if (s.beta != most) strength = soft;
      }
    }
    const double begin =
        c_.weights.bos > 0
            ? double(head.rows) * ((soft + 4 * m.key + rounding) * size + m.value * columns)
            : delta_ / kStateUnit * root_ * columns;
    if (head.actions.empty()) return begin;
    const double step = 4 * m.key + strength + rounding;
    // Reflections keep what was wrong before and add to it; writes forget it.
    if (reflects)
      return 1.25 * (begin + length_ * double(steps) *
                                 ((step + drift_of(head)) * size + 2 * m.value * columns));
    return begin + m.value + step * size / least + 2 * length_ * m.key * size;
  }

  double drift_of(const Head& head) const {
    double out = fla_ ? fla_shrinks() : 0;
    if (head.group && head.group->exactness == Exactness::kDrift) out += head.group->residual;
    if (c_.plan.dihedral) out += c_.plan.dihedral->residual;
    return out;
  }

  bool gates(const std::string& name, const Layer& layer) {
    const Input x = errors_.normed(name + "_norm");
    const Off sum = errors_.product(name + ".gate_proj", x);
    const Off ups = errors_.product(name + ".up_proj", x);
    const Tensor shared = (sum.scaled + sum.shared).contiguous(), own = sum.moved + sum.rounding;
    // Of what a unit is multiplied by, and of what reads it, as shares.
    const double units =
        largest(ups.moved) / kUp + delta_ * kGateStep * kUp / kStreamUnit + 8 * kUlp;
    // What both units of a gate have in common: the constant feature is what they are multiplied
    // by, and what their sums differ by.
    const double constant = (x.scaled[0] + x.noise[0]).item<double>() / kMlpUnit;
    const double both = largest(ups.scaled + ups.shared) / kUp + constant;
    std::set<int64_t>
        taken;  // features that gates take from: more than one is open when they are 0
    for (const auto& g : layer.gates)
      for (const auto& [f, w] : g.out)
        if (w < 0) taken.insert(f);
    std::map<std::pair<int64_t, int64_t>, Open> members;
    std::map<int64_t, std::vector<int64_t>> to;
    for (size_t i = 0; i < layer.gates.size(); ++i) {
      const Gate& g = layer.gates[i];
      const double common = shared.data_ptr<double>()[2 * i] + kGateStep * constant;
      const double apart = own.data_ptr<double>()[2 * i];
      if (common + apart > kGateSlack) return false;
      const double most = gain_of(g) * g.highest + common + apart;
      // Of the 64 that silu(g) up - silu(g - 64) up' is short of, or above.
      const double share = 2 * (apart + most * units) / kGateStep;
      auto& open = members[{g.family, g.family < 0 ? int64_t(i) : g.member}];
      open.read += 2 * most * kUp * (1 + units + both);
      for (const auto& [f, w] : g.out) {
        errors_.resize(f, taken.contains(f) ? both : both + share);
        if (!taken.contains(f)) continue;
        if (g.family < 0) errors_.add(f, kStreamUnit * share * std::abs(w));
        if (g.family < 0) continue;
        open.error += share * std::abs(w);
        to[g.family].push_back(f);
      }
    }
    write(members, to);
    return true;
  }

  // What the gates of a family get wrong when they are open, and what is read of them.
  struct Open {
    double error = 0, read = 0;
  };
  void write(const std::map<std::pair<int64_t, int64_t>, Open>& members,
             const std::map<int64_t, std::vector<int64_t>>& to) {
    std::map<int64_t, Open> families;
    for (const auto& [who, open] : members) {
      auto& most = families[who.first];
      most.error = std::max(most.error, open.error);
      most.read = who.first < 0 ? most.read + open.read : std::max(most.read, open.read);
    }
    double read = 0;
    std::vector<Source> sources;
    for (const auto& [family, open] : families) {
      if (open.error > 0)
        sources.push_back({torch::tensor(to.at(family)), false, kStreamUnit * open.error});
      read += open.read;
    }
    errors_.add(sources, delta_ * read);
  }

  // The answers lead by kLead. Where they are read without gates, g before h by half the squared
  // distance of what is read of them, so what is read may be off by half the least distance.
  bool answers() const {
    const Input x = errors_.normed("model.norm");
    const double mass = answer_unit(net_) * net_.reach + constant_unit(net_);
    const double off = largest(errors_.product(errors_.weight("lm_head"), x, mass).all());
    return 2 * off / kLead + direct_ / std::sqrt(net_.lead / 2) < 1;
  }

  const Compiled& c_;
  const Network& net_;
  Errors errors_;
  double delta_, length_, root_;
  bool fla_;
  double direct_ = 0;  // the length of the error in what answers read from heads
};

}  // namespace

std::string breaks(const Compiled& c, double weight, int64_t length) {
  torch::InferenceMode no_gradients;
  return Walk(c, weight, length).breaks();
}

Margin margin_of(const Compiled& c, int64_t length) {
  constexpr double kLeast = 0x1p-30;
  Margin out{0, length, ""};
  if (double(length) > c.t_safe) {
    out.limit = cat("the heads, right for ", int64_t(c.t_safe), " tokens only,");
    return out;
  }
  const auto holds = [&](double weight) {
    const auto limit = breaks(c, weight, length);
    if (!limit.empty()) out.limit = limit;
    return limit.empty();
  };
  double low = 2 * kAnswerMargin;
  while (!holds(low) && low >= kLeast) low /= 2;
  if (low < kLeast) return out;
  for (double high = 2 * low; high - low > low / 64;) {
    const double middle = (low + high) / 2;
    (holds(middle) ? low : high) = middle;
  }
  out.weight = low;
  return out;
}

}  // namespace lrnn::compile
