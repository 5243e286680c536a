#include <algorithm>

#include "base/error.h"
#include "compile/compile.h"

namespace lrnn::compile {
namespace {

// More gates than this are a mistake in the plan, and would not fit into memory.
constexpr size_t kMostGates = 200000;

struct Answer {
  std::vector<Form> literals;
  int64_t label;
};

// Every combination of alternatives, one from each component, that is a state.
std::vector<Answer> combine(const Built& built, const Plan& plan, const Labels& labels) {
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

// One feature per answer, of which exactly one is 1.
void write_answers(Built& built, const Plan& plan, const Labels& labels) {
  Network& net = built.network;
  const auto answers = combine(built, plan, labels);
  std::vector<int64_t> rows(labels.names.size()), to(labels.names.size(), -1);
  for (const auto& a : answers) ++rows[size_t(a.label)];
  // The label with most rows needs no gates: it is the answer when no other one is.
  const auto usual = size_t(std::max_element(rows.begin(), rows.end()) - rows.begin());
  net.labels.assign(labels.names.size(), Form{});
  for (size_t l = 0; l < rows.size(); ++l) {
    if (rows[l] == 0) continue;
    to[l] = net.add("answer " + labels.names[l], 0, l == usual);
    net.labels[l] = feature(to[l]);
  }
  std::vector<int64_t> said;
  for (const int64_t f : to)
    if (f >= 0) said.push_back(f);
  net.choose(said);
  const int64_t family = net.new_family();
  for (const auto& a : answers) {
    if (size_t(a.label) == usual) continue;
    auto& gates = net.layers.back().gates;
    gates.push_back(all_of(a.literals, {{to[size_t(a.label)], 1}, {to[usual], -1}}));
    gates.back().family = family, gates.back().member = int64_t(gates.size());
  }
}

void build_components(Built& built, const Plan& plan, const Labels& labels) {
  Network& net = built.network;
  for (size_t c = 0; c < plan.components.size(); ++c)
    built.components.push_back(
        std::make_unique<ComponentNet>(net, plan.components[c], cat("part ", c + 1)));
  net.layer(0);
  auto& first = *built.components[0];
  if (built.components.size() > 1 || first.states_told_apart() != labels.names.size())
    return write_answers(built, plan, labels);
  const auto likeness = first.read_likeness();
  net.lead = likeness.lead, net.reach = likeness.reach;
  net.labels.assign(labels.names.size(), Form{});
  for (size_t s = 0; s < labels.of_state.size(); ++s)
    net.labels[size_t(labels.of_state[s])] = likeness.of_state[s];
}

}  // namespace

Labels labels_of(const Automaton& a, bool recogniser) {
  Labels out;
  for (int64_t s = 0; s < a.states; ++s) {
    if (!recogniser) out.names.push_back(a.state_name(s));
    out.of_state.push_back(recogniser ? int64_t(a.accept[size_t(s)]) : s);
  }
  if (recogniser) out.names = {"reject", "accept"};
  return out;
}

std::unique_ptr<Built> build(const Plan& plan, const Automaton& a, const Labels& labels) {
  auto out = std::make_unique<Built>();
  Network& net = out->network;
  net.add("one", 0, 1);
  for (int64_t x = 0; x < a.symbols; ++x)
    net.symbols.push_back(net.add("reads " + a.symbol_name(x), 0));
  if (!net.symbols.empty()) net.choose(net.symbols);
  if (!plan.definite && !plan.dihedral) {
    build_components(*out, plan, labels);
    return out;
  }
  std::vector<int64_t> to;
  for (const auto& name : labels.names) {
    to.push_back(net.add("answer " + name, 0));
    net.labels.push_back(feature(to.back()));
  }
  net.choose(to);
  if (plan.definite)
    add_definite(net, *plan.definite, labels.of_state, to);
  else
    add_dihedral(net, *plan.dihedral, labels.of_state, to);
  return out;
}

}  // namespace lrnn::compile
