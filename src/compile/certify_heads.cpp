#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "compile/certificate.h"
#include "compile/parts.h"
#include "ops/torch.h"

// Heads, through the real mixer: groups element by element, flip-flops by the three inequalities
// that keep what is held, what was held and the rest apart.
namespace lrnn::compile {
namespace {

using torch::Tensor;

// A write this far from its strength is a broken weight; what a nearer one does to the values, the
// tables are asked about (certify_tables.cpp).
constexpr double kWriteError = 1e-2;
constexpr int64_t kRowsAtOnce = 4096, kWord = 256;

// The state of a head that holds each coset's matrix, in the corner of the layer's states.
Tensor group_states(const Head& head, int64_t K, int64_t V) {
  const auto& g = *head.group;
  const auto cosets = int64_t(g.matrices.size());
  Tensor out = torch::zeros({cosets, K, V}, torch::kFloat64);
  double* to = out.data_ptr<double>();
  for (int64_t c = 0; c < cosets; ++c)
    for (int64_t r = 0; r < head.rows; ++r)
      for (int64_t col = 0; col < head.cols; ++col)
        to[(c * K + r) * V + col] = g.matrices[size_t(c)][size_t((r % g.dim) * g.dim + col)];
  return out;
}

// after[coset][letter]
std::vector<std::vector<int64_t>> transitions(const Head& head) {
  const auto& g = *head.group;
  std::vector<std::vector<int64_t>> out(g.matrices.size(),
                                        std::vector<int64_t>(head.actions.size()));
  for (int64_t e = 0; e < head.plan->group.order(); ++e)
    for (size_t x = 0; x < head.actions.size(); ++x)
      out[size_t(g.coset[size_t(e)])][x] =
          g.coset[size_t(head.plan->group.product(e, head.actions[x].element))];
  return out;
}

struct HeadCheck {
  const Parts& parts;
  const Network& net;
  int64_t layer, h;
  const Head& head;
  double allowed;  // deviation per token

  Tensor streams(const std::vector<int64_t>& letters) const {
    Tensor x = parts.base(int64_t(letters.size()));
    for (size_t i = 0; i < letters.size(); ++i)
      x[int64_t(i)][head.actions[size_t(letters[i])].feature] += 1;
    return x;
  }
  Tensor full(const Tensor& own) const {  // [B,K,V] -> [B,H,K,V]
    Tensor out = torch::zeros({own.size(0), net.heads(), own.size(1), own.size(2)}, own.options());
    out.select(1, h).copy_(own);
    return out;
  }

  // Every coset, every letter, one token; then long words, which the kernel takes in pieces.
  std::string wrong(int64_t& cases) const {
    const Tensor states = group_states(head, net.key_dim(), net.value_dim());
    const auto next = transitions(head);
    const auto cosets = int64_t(next.size());
    for (int64_t x = 0; x < int64_t(head.actions.size()); ++x)
      for (int64_t c = 0; c < cosets; c += kRowsAtOnce) {
        const int64_t rows = std::min(kRowsAtOnce, cosets - c);
        const Tensor in = streams({x}).unsqueeze(0).expand({rows, 1, parts.width()});
        std::vector<int64_t> to;
        for (int64_t i = c; i < c + rows; ++i) to.push_back(next[size_t(i)][size_t(x)]);
        if (differs(in, states.slice(0, c, c + rows), states.index_select(0, torch::tensor(to)),
                    allowed))
          return cat("layer ", layer + 1, " head ", h + 1,
                     ": a letter does not permute its states");
        cases += rows;
      }
    Random random(5, 0, 0);
    std::vector<int64_t> word;
    int64_t coset = head.group->coset[0];
    const int64_t first = coset;
    for (int64_t t = 0; t < kWord && !head.actions.empty(); ++t) {
      word.push_back(int64_t(random.below(head.actions.size())));
      coset = next[size_t(coset)][size_t(word.back())];
    }
    cases += kWord;
    const Tensor in = streams(word).unsqueeze(0);
    if (!word.empty() && differs(in, states.slice(0, first, first + 1),
                                 states.slice(0, coset, coset + 1), allowed * kWord))
      return cat("layer ", layer + 1, " head ", h + 1, ": a word of ", kWord,
                 " letters goes astray");
    return {};
  }

  bool differs(const Tensor& in, const Tensor& from, const Tensor& to, double tolerance) const {
    const auto weight = net.features.empty() ? torch::kFloat32 : dtype();
    Tensor state = full(from).to(weight);
    parts.mix(layer, in, state);
    const Tensor got = state.select(1, h).to(torch::kFloat64);
    return (got - to.to(weight).to(torch::kFloat64)).abs().max().item<double>() > tolerance;
  }
  torch::Dtype dtype() const {
    const Tensor start = parts.initial_state(layer);
    return start.defined() ? start.scalar_type() : torch::kFloat32;
  }
};

}  // namespace

Certificate::Part certify_groups(const Compiled& c, const Parts& parts) {
  Certificate::Part out{"group heads", 0, ""};
  const Network& net = c.built->network;
  const bool fla = c.options.profile == Profile::kFla;
  for (int64_t l = 0; l < int64_t(net.layers.size()); ++l)
    for (int64_t h = 0; h < int64_t(net.layers[size_t(l)].heads.size()); ++h) {
      const Head& head = net.layers[size_t(l)].heads[size_t(h)];
      if (!head.group || !out.wrong.empty()) continue;
      double allowed = 0;
      if (head.group->exactness == Exactness::kDrift)
        allowed = 1e-5;  // one ulp of a key, some times over; T_safe says what becomes of it
      if (fla) allowed = 1e-4 * double(net.householders());
      out.wrong = HeadCheck{parts, net, l, h, head, allowed}.wrong(out.cases);
    }
  return out;
}

namespace {

// Every letter that some level reads, or that the head's own level does, one of which is read with
// every token.
std::vector<int64_t> letters_of(const Compiled& c, const Head& head) {
  std::set<int64_t> out(head.idle.begin(), head.idle.end());
  for (const auto& component : c.built->components)
    for (const auto& level : component->levels())
      for (const auto& [t, f] : level.act)
        if (!head.usual) out.insert(f);
  for (const auto& action : head.actions) out.insert(action.feature);
  return {out.begin(), out.end()};
}

// [letters, width]: the stream that each letter finds.
Tensor alone(const Parts& parts, const std::vector<int64_t>& letters) {
  Tensor x = parts.base(int64_t(letters.size()));
  for (size_t i = 0; i < letters.size(); ++i) x[int64_t(i)][letters[i]] += 1;
  return x.unsqueeze(0);
}

}  // namespace

// A letter that writes does so with the strength it should have, or nearly; any other not at all.
Certificate::Part certify_flip_flops(const Compiled& c, const Parts& parts) {
  Certificate::Part out{"flip-flops", 0, ""};
  const Network& net = c.built->network;
  for (int64_t l = 0; l < int64_t(net.layers.size()); ++l)
    for (int64_t h = 0; h < int64_t(net.layers[size_t(l)].heads.size()); ++h) {
      const Head& head = net.layers[size_t(l)].heads[size_t(h)];
      if (!head.one_row || c.plan.dihedral) continue;
      std::map<int64_t, double> beta;
      for (const auto& action : head.actions) beta[action.feature] = action.steps[0].beta;
      const auto all = letters_of(c, head);
      const Tensor x = alone(parts, all);
      const Tensor got = parts.observed(l, x, "beta"), key = parts.observed(l, x, "k");
      for (size_t i = 0; i < all.size(); ++i) {
        const double b = got[0][int64_t(i)][0][h].item<double>();
        const double k = key[0][int64_t(i)][0][h][0].item<double>();
        const auto want = beta.find(all[i]);
        const bool fine = want == beta.end() ? b == 0 : std::abs(b - want->second) < kWriteError;
        ++out.cases;
        if (!fine || std::abs(k - 1) > 1e-6)
          out.wrong = cat("layer ", l + 1, " head ", h + 1, " writes ", b, " at '",
                          net.features[size_t(all[i])].name, "'");
      }
    }
  return out;
}

std::pair<double, double> write_strengths(const Compiled& c, const Parts& parts, int64_t layer,
                                          const std::vector<int64_t>& holds) {
  const auto& heads = c.built->network.layers[size_t(layer)].heads;
  for (size_t h = 0; h < heads.size(); ++h) {
    if (heads[h].to != holds || heads[h].actions.empty()) continue;
    std::vector<int64_t> letters;
    for (const auto& action : heads[h].actions) letters.push_back(action.feature);
    const Tensor beta =
        parts.observed(layer, alone(parts, letters), "beta")[0].select(1, 0).select(1, int64_t(h));
    return {beta.min().item<double>(), beta.max().item<double>()};
  }
  return {1, 1};  // nothing is ever written
}

}  // namespace lrnn::compile
