#include "compile/certificate.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "compile/parts.h"
#include "model/checkpoint.h"
#include "ops/torch.h"

namespace lrnn::compile {

bool Certificate::holds() const { return first_wrong().empty(); }

std::string Certificate::first_wrong() const {
  for (const auto& p : parts)
    if (!p.wrong.empty()) return cat(p.name, ": ", p.wrong);
  return {};
}

namespace {

// What is known of the construction's weights is known of the model's if they are the same.
Margin margin_of_model(const Compiled& c, const model::Model& model) {
  for (const auto& [name, tensor] : model::tensors_of(model)) {
    const auto at = c.weights.tensors.find(name);
    if (at == c.weights.tensors.end() || !tensor.equal(at->second.to(tensor.scalar_type())))
      return {0, kMarginLength, cat(name, " is not as it was compiled")};
  }
  return margin_of(c);
}

}  // namespace

Certificate certify(const Compiled& c, const model::Model& model) {
  torch::InferenceMode no_gradients;
  const Parts parts(model, c.built->network);
  Certificate out;
  out.exact = c.exactness == Exactness::kExact;
  out.parts = {certify_cascades(c), certify_groups(c, parts), certify_flip_flops(c, parts),
               certify_tables(c, parts), certify_answers(c, parts)};
  if (out.holds()) out.margin = margin_of_model(c, model);
  return out;
}

namespace {

// The value of the register after a word of k letters, when it was between low and high before it.
// Every such interval must lie in one of the plan's that belongs to the right state.
void certify_registers(const Compiled& c, Certificate::Part& part) {
  const auto& plan = *c.plan.definite;
  const auto& a = c.subject.automaton;
  double least = plan.start, most = plan.start;
  for (const double d : plan.digit) least = std::min(least, d), most = std::max(most, d);
  std::vector<int64_t> word(size_t(plan.k), 0);
  for (;;) {
    double low = least, high = most;
    for (const int64_t x : word) {
      low = plan.leak * low + (1 - plan.leak) * plan.digit[size_t(x)];
      high = plan.leak * high + (1 - plan.leak) * plan.digit[size_t(x)];
    }
    const int64_t state = a.read(word);
    bool found = false;
    for (const auto& i : plan.intervals)
      found |= i.state == state && low >= i.low - 1e-9 && high <= i.high + 1e-9;
    ++part.cases;
    if (!found && part.wrong.empty())
      part.wrong = cat("a word of ", plan.k, " letters has no interval");
    size_t i = 0;
    while (i < word.size() && ++word[i] == a.symbols) word[i++] = 0;
    if (i == word.size()) return;
  }
}

}  // namespace

// Integers only: the cascade of every component does what its automaton does, and the blocks of all
// components together are the state.
Certificate::Part certify_cascades(const Compiled& c) {
  Certificate::Part out{"integer cascade", 0, ""};
  std::set<std::vector<int64_t>> blocks;
  const auto& a = c.subject.automaton;
  for (const auto& component : c.plan.components) {
    out.cases += int64_t(component.cascade->reachable().coordinates.size()) * a.symbols;
    if (!component.cascade->faithful()) out.wrong = "a cascade does not follow its automaton";
    for (int64_t s = 0; s < a.states; ++s)
      for (int64_t x = 0; x < a.symbols; ++x)
        if (component.block[size_t(a.step(s, x))] !=
            component.automaton.step(component.block[size_t(s)], x))
          out.wrong = "the blocks of a component are not closed under the letters";
  }
  for (int64_t s = 0; s < a.states && !c.plan.components.empty(); ++s) {
    std::vector<int64_t> of;
    for (const auto& component : c.plan.components) of.push_back(component.block[size_t(s)]);
    if (!blocks.insert(of).second) out.wrong = "two states have the same blocks";
  }
  if (c.plan.definite) certify_registers(c, out);
  return out;
}

}  // namespace lrnn::compile
