#include <algorithm>
#include <set>

#include "automata/automaton.h"
#include "base/random.h"
#include "compile/plan/representation.h"

namespace lrnn::compile {
namespace {

constexpr int64_t kSampledOrder = 1500;  // groups whose subgroups are looked for
constexpr int kSamples = 3000;
constexpr int64_t kMostAxes = 32;
constexpr int64_t kMostEntries = 4000000;  // of all matrices of a head

struct Subgroup {
  std::vector<int64_t> generators, elements;
  std::vector<uint8_t> has;
};

Subgroup closure(const PermutationGroup& group, const std::vector<int64_t>& generators) {
  Subgroup out{generators, {0}, std::vector<uint8_t>(at(group.order()), 0)};
  out.has[0] = 1;
  for (size_t i = 0; i < out.elements.size(); ++i)
    for (const int64_t g : generators) {
      const int64_t p = group.product(out.elements[i], g);
      if (out.has[at(p)]) continue;
      out.has[at(p)] = 1;
      out.elements.push_back(p);
    }
  return out;
}

// +1 or -1 for each element of the subgroup, given for its generators; empty when that is no
// homomorphism.
std::vector<int8_t> character(const PermutationGroup& group, const Subgroup& h, size_t signs) {
  std::vector<int8_t> out(h.has.size(), 0);
  out[0] = 1;
  for (const int64_t p : h.elements)  // in the order of the search: p is known when it is its turn
    for (size_t g = 0; g < h.generators.size(); ++g) {
      const auto value = static_cast<int8_t>((signs >> g) & 1 ? -out[at(p)] : out[at(p)]);
      auto& there = out[at(group.product(p, h.generators[g]))];
      if (there == 0) there = value;
      if (there != value) return {};
    }
  return out;
}

// Elements move the cosets H c to H c g; chi says what happens to the sign.
SignedAction on_cosets(const PermutationGroup& group, const Subgroup& h,
                       const std::vector<int8_t>& chi) {
  std::vector<int64_t> coset(at(group.order()), -1), first;
  std::vector<int8_t> sign(at(group.order()),
                           1);  // g = k c with chi(k) = sign, c first of its coset
  for (int64_t c = 0; c < group.order(); ++c) {
    if (coset[at(c)] >= 0) continue;
    for (const int64_t k : h.elements) {
      const int64_t g = group.product(k, c);
      coset[at(g)] = static_cast<int64_t>(first.size());
      if (!chi.empty()) sign[at(g)] = chi[at(k)];
    }
    first.push_back(c);
  }
  SignedAction out;
  out.degree = static_cast<int64_t>(first.size());
  for (int64_t g = 0; g < group.order(); ++g) {
    Permutation image;
    std::vector<int8_t> signs;
    for (const int64_t c : first) {
      const int64_t to = group.product(c, g);
      image.push_back(static_cast<int>(coset[at(to)]));
      signs.push_back(sign[at(to)]);
    }
    out.image.push_back(std::move(image)), out.sign.push_back(std::move(signs));
  }
  return out;
}

// The number of the conjugacy class of each element.
std::vector<size_t> conjugacy(const PermutationGroup& group) {
  std::vector<int64_t> generators;
  for (const auto& p : group.generators()) generators.push_back(group.find(p));
  constexpr auto kNone = static_cast<size_t>(-1);
  std::vector<size_t> out(at(group.order()), kNone);
  size_t classes = 0;
  for (int64_t g = 0; g < group.order(); ++g) {
    if (out[at(g)] != kNone) continue;
    std::vector<int64_t> members = {g};
    out[at(g)] = classes;
    for (size_t i = 0; i < members.size(); ++i)
      for (const int64_t s : generators) {
        const int64_t moved = group.product(group.product(group.inverse(s), members[i]), s);
        if (out[at(moved)] != kNone) continue;
        out[at(moved)] = classes;
        members.push_back(moved);
      }
    ++classes;
  }
  return out;
}

// The character of the action on cosets follows from where the subgroup meets the classes.
// Equivalent actions have equal ones and are equally good.
std::vector<int64_t> character_key(const Subgroup& h, const std::vector<int8_t>& chi,
                                   const std::vector<size_t>& classes) {
  std::vector<int64_t> out(*std::max_element(classes.begin(), classes.end()) + 2, 0);
  for (const int64_t g : h.elements) out[classes[at(g)]] += chi[at(g)];
  out.back() = static_cast<int64_t>(h.elements.size());
  return out;
}

std::vector<SignedAction> on_orbits(const PermutationGroup& group) {
  std::vector<SignedAction> out;
  std::vector<int> place(at(group.degree()), -1);
  for (int64_t p = 0; p < group.degree(); ++p) {
    if (place[at(p)] >= 0) continue;
    std::vector<int> orbit = {static_cast<int>(p)};
    place[at(p)] = 0;
    for (size_t i = 0; i < orbit.size(); ++i)
      for (const auto& g : group.generators()) {
        const int to = g[at(orbit[i])];
        if (place[at(to)] >= 0) continue;
        place[at(to)] = static_cast<int>(orbit.size());
        orbit.push_back(to);
      }
    const auto n = static_cast<int64_t>(orbit.size());
    if (n == 1 || n * n * group.order() > kMostEntries) continue;
    SignedAction action{static_cast<int64_t>(orbit.size()), {}, {}};
    for (int64_t g = 0; g < group.order(); ++g) {
      Permutation image;
      for (const int q : orbit) image.push_back(place[at(group.element(g)[at(q)])]);
      action.image.push_back(std::move(image));
      action.sign.emplace_back(orbit.size(), 1);
    }
    out.push_back(std::move(action));
  }
  return out;
}

std::vector<Subgroup> sampled_subgroups(const PermutationGroup& group) {
  std::vector<Subgroup> out;
  std::set<std::vector<uint8_t>> seen;
  const auto add = [&](const std::vector<int64_t>& generators) {
    auto h = closure(group, generators);
    if (seen.insert(h.has).second) out.push_back(std::move(h));
  };
  add({});
  for (int64_t g = 1; g < group.order(); ++g) add({g});
  const auto n = static_cast<uint64_t>(group.order());
  Random random(1, 0, n);
  const auto any = [&] { return static_cast<int64_t>(random.below(n)); };
  if (group.order() * group.order() <= 2 * kSamples) {
    for (int64_t g = 1; g < group.order(); ++g)
      for (int64_t h = 1; h < g; ++h) add({g, h});
  } else {
    for (int i = 0; i < kSamples; ++i) add({any(), any()});
  }
  for (int i = 0; i < kSamples / 10; ++i) add({any(), any(), any()});
  return out;
}

}  // namespace

std::vector<SignedAction> signed_actions(const PermutationGroup& group) {
  std::vector<SignedAction> out = on_orbits(group);
  if (group.order() > kSampledOrder) return out;
  const auto classes = conjugacy(group);
  std::set<std::vector<int64_t>> seen;
  for (const auto& h : sampled_subgroups(group)) {
    const int64_t index = group.order() / static_cast<int64_t>(h.elements.size());
    if (index > kMostAxes) continue;
    for (size_t signs = 0; signs < size_t{1} << h.generators.size(); ++signs) {
      if (signs == 0 && index == 1) continue;
      const auto chi = character(group, h, signs);
      if (!chi.empty() && seen.insert(character_key(h, chi, classes)).second)
        out.push_back(on_cosets(group, h, chi));
    }
  }
  return out;
}

SignedAction with_even_signs(SignedAction action) {
  const auto product = [](const std::vector<int8_t>& sign) {
    int8_t out = 1;
    for (const int8_t s : sign) out = static_cast<int8_t>(out * s);
    return out;
  };
  const bool even = std::all_of(action.sign.begin(), action.sign.end(),
                                [&](const auto& s) { return product(s) == 1; });
  if (even) return action;
  for (auto& image : action.image) image.push_back(static_cast<int>(action.degree));
  for (auto& sign : action.sign) sign.push_back(product(sign));
  ++action.degree;
  return action;
}

int64_t reflections_needed(const Permutation& image, const std::vector<int8_t>& sign) {
  int64_t out = 0, cycles = 0;
  std::vector<uint8_t> seen(image.size(), 0);
  for (size_t i = 0; i < image.size(); ++i) {
    if (seen[i]) continue;
    int sigma = 1;
    for (size_t j = i; !seen[j]; j = at(image[j])) seen[j] = 1, sigma *= sign[j], ++out;
    cycles += sigma > 0;
  }
  return out - cycles;
}

std::vector<Householder> reflections_of(const Permutation& image, const std::vector<int8_t>& sign) {
  std::vector<Householder> out;
  const auto add = [&](size_t i, size_t j, double s) {  // root e_i + s e_j
    Householder h;
    h.root.assign(image.size(), 0);
    h.root[i] = 1, h.root[j] = s;
    out.push_back(std::move(h));
  };
  std::vector<uint8_t> seen(image.size(), 0);
  std::vector<size_t> negative;  // an axis of each cycle that comes back with the other sign
  for (size_t i = 0; i < image.size(); ++i) {
    if (seen[i]) continue;
    int sigma = 1;
    for (size_t j = i;;) {
      seen[j] = 1;
      sigma *= sign[j];
      j = at(image[j]);
      if (j == i) break;
      add(i, j, -sigma);
    }
    if (sigma < 0) negative.push_back(i);
  }
  // Two of them turn back together: about e_i - e_j and about e_i + e_j.
  for (size_t n = 0; n + 1 < negative.size(); n += 2)
    add(negative[n], negative[n + 1], -1), add(negative[n], negative[n + 1], 1);
  return out;
}

}  // namespace lrnn::compile
