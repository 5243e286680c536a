#include "compile/build.h"

#include <algorithm>

#include "base/error.h"

namespace lrnn::compile {
namespace {

// Far enough apart for a sharp softmax, near enough for fine-tuning.
constexpr double kLogit = 16;
// More gates than this are a mistake in the plan, and would not fit into memory.
constexpr size_t kMostGates = 200000;

struct Answer {
  std::vector<Form> literals;
  int64_t label;
};

// Every combination of alternatives, one from each component, that is a state.
std::vector<Answer> combine(const Built& built, const automata::Plan& plan, const Labels& labels) {
  std::vector<Answer> out;
  std::vector<int64_t> blocks;
  std::vector<Form> literals;
  const auto choose = [&](const auto& self, size_t c) -> void {
    if (c == built.components.size()) {
      const int64_t state = plan.state_of(blocks);
      if (state >= 0) out.push_back({literals, labels.of_state[size_t(state)]});
      check(out.size() <= kMostGates, "the table of answers has more than ", kMostGates, " rows");
      return;
    }
    for (const auto& a : built.components[c]->alternatives()) {
      const size_t before = literals.size();
      literals.insert(literals.end(), a.literals.begin(), a.literals.end());
      blocks.push_back(a.block);
      self(self, c + 1);
      blocks.pop_back();
      literals.resize(before);
    }
  };
  choose(choose, 0);
  return out;
}

void write_answers(Built& built, const automata::Plan& plan, const Labels& labels) {
  Network& net = built.network;
  const auto answers = combine(built, plan, labels);
  // The label with most rows needs none: it is the answer when no other one is.
  std::vector<int64_t> rows(labels.names.size());
  for (const auto& a : answers) ++rows[size_t(a.label)];
  const auto usual = std::max_element(rows.begin(), rows.end()) - rows.begin();
  net.labels.assign(labels.names.size(), Form{});
  net.labels[size_t(usual)].constant = kLogit / 2;
  std::vector<int64_t> to(labels.names.size(), -1);
  for (const auto& a : answers) {
    if (a.label == usual) continue;
    auto& f = to[size_t(a.label)];
    if (f < 0) {
      f = net.add("answer " + labels.names[size_t(a.label)], kGateOffset);
      net.labels[size_t(a.label)].add(f, kLogit);
    }
    net.layers.back().gates.push_back(all_of(a.literals, {{f, 1}}));
  }
  // Labels that are never an answer must not tie with those that are.
  for (size_t l = 0; l < to.size(); ++l)
    if (to[l] < 0 && int64_t(l) != usual) net.labels[l].constant = -kLogit;
}

void build_components(Built& built, const automata::Plan& plan, const Labels& labels) {
  Network& net = built.network;
  for (size_t c = 0; c < plan.components.size(); ++c)
    built.components.push_back(
        std::make_unique<ComponentNet>(net, plan.components[c], cat("part ", c + 1)));
  net.layer(0);
  const auto& first = *built.components[0];
  const bool states = labels.names.size() == first.likenesses().size();
  if (built.components.size() == 1 && states && !first.likenesses().empty()) {
    net.labels.assign(labels.names.size(), Form{});
    for (size_t s = 0; s < labels.of_state.size(); ++s)
      net.labels[size_t(labels.of_state[s])] = first.likenesses()[s];
    return;
  }
  write_answers(built, plan, labels);
}

}  // namespace

Labels labels_of(const automata::Automaton& a, bool recogniser) {
  Labels out;
  for (int64_t s = 0; s < a.states; ++s) {
    if (!recogniser) out.names.push_back(a.state_name(s));
    out.of_state.push_back(recogniser ? int64_t(a.accept[size_t(s)]) : s);
  }
  if (recogniser) out.names = {"reject", "accept"};
  return out;
}

std::unique_ptr<Built> build(const automata::Plan& plan, const automata::Automaton& a,
                             const Labels& labels) {
  auto out = std::make_unique<Built>();
  Network& net = out->network;
  net.add("one", 0, 1);
  for (int64_t x = 0; x < a.symbols; ++x)
    net.symbols.push_back(net.add("reads " + a.symbol_name(x), 0));
  if (!plan.definite && !plan.dihedral) {
    build_components(*out, plan, labels);
    return out;
  }
  std::vector<int64_t> to;
  for (const auto& name : labels.names) {
    to.push_back(net.add("answer " + name, kGateOffset));
    net.labels.push_back(feature(to.back(), kLogit));
  }
  if (plan.definite)
    add_definite(net, *plan.definite, labels.of_state, to);
  else
    add_dihedral(net, *plan.dihedral, labels.of_state, to);
  return out;
}

}  // namespace lrnn::compile
