#include <gtest/gtest.h>

#include <cmath>

#include "automata/read/source.h"
#include "base/random.h"
#include "cli/explain.h"
#include "compile/scales.h"
#include "ops/torch.h"

namespace lrnn::cli {
namespace {

using Matrix = std::vector<double>;

automata::Subject example_named(const std::string& name) {
  automata::Source source;
  source.example = name;
  return automata::load(source);
}
automata::Subject group_named(const std::string& name, const std::string& letters = "") {
  automata::Source source;
  source.group = name, source.letters = letters;
  return automata::load(source);
}

Matrix product(const Stepping::Head& head, const Stepping::Action& act, const Matrix& h) {
  Matrix out = act.b.empty() ? Matrix(h.size()) : act.b;
  for (int64_t r = 0; r < head.rows; ++r)
    for (int64_t q = 0; q < head.rows; ++q)
      for (int64_t c = 0; c < head.cols; ++c)
        out[size_t(r * head.cols + c)] +=
            act.a[size_t(r * head.rows + q)] * h[size_t(q * head.cols + c)];
  return out;
}

// What the page computes, letter by letter, is what the model holds.
void expect_the_model_state(const automata::Subject& subject, const compile::Options& options) {
  torch::InferenceMode no_gradients;
  const auto c = compile::compile(subject, options);
  const auto model = compile::model_of(c->weights);
  const auto s = stepping(*c, *model);
  ASSERT_EQ(s.without, "") << subject.title;
  ASSERT_FALSE(s.heads.empty());
  model::State state;
  if (c->weights.bos) {
    std::vector<int64_t> before;
    for (int64_t b = c->weights.bos; b > 0; --b) before.push_back(c->weights.vocabulary - b);
    model->forward(torch::tensor(before).unsqueeze(0), state);
  }
  std::vector<Matrix> h;
  for (const auto& head : s.heads) h.push_back(head.start);
  Random random(99, 0, 0);
  size_t at = 0;
  int64_t automaton = subject.automaton.start;
  for (int t = 0; t < 40; ++t) {
    const auto x = int64_t(random.below(uint64_t(subject.automaton.symbols)));
    automaton = subject.automaton.step(automaton, x);
    model->forward(torch::tensor({x}).unsqueeze(0), state);
    const auto& move = s.moves[size_t(s.places[at].moves[size_t(x)])];
    at = size_t(s.places[at].next[size_t(x)]);
    ASSERT_EQ(s.places[at].state, automaton) << subject.title;
    for (size_t i = 0; i < h.size(); ++i) {
      const auto& head = s.heads[i];
      h[i] = product(head, head.actions[size_t(move[i])], h[i]);
      const auto held = state[size_t(head.layer - 1)][0][0][head.head - 1].to(torch::kFloat64) /
                        compile::kStateUnit;
      for (int64_t r = 0; r < head.rows; ++r)
        for (int64_t k = 0; k < head.cols; ++k)
          ASSERT_NEAR(h[i][size_t(r * head.cols + k)], held[r][k].item<double>(), 1e-3)
              << subject.title << " after " << t + 1 << " letters, head " << i;
    }
  }
}

TEST(Stepping, HoldsWhatTheModelHolds) {
  for (const char* name : {"parity", "flip_flop", "tomita3", "ends_with_aba", "mod3_reset", "t3",
                           "even_pairs", "two_parities_reset"})
    expect_the_model_state(example_named(name), {});
  expect_the_model_state(group_named("S3"), {});
  expect_the_model_state(group_named("S5", "swaps"), {});
}

TEST(Stepping, InEveryProfile) {
  for (const auto profile :
       {compile::Profile::kNativeBos, compile::Profile::kFla, compile::Profile::kFp64}) {
    compile::Options options;
    options.profile = profile;
    expect_the_model_state(example_named("mod3_reset"), options);
  }
  compile::Options options;
  options.gate = true;
  expect_the_model_state(group_named("S3"), options);
  options = {};
  options.limits.drift = true;
  options.limits.householders = 1;
  expect_the_model_state(group_named("Z5"), options);  // two layers of single reflections
}

// A first layer that writes too little: what a letter does further up depends on the whole past.
TEST(Stepping, SaysWhenTheModelDoesNotFollowThePlan) {
  torch::InferenceMode no_gradients;
  const auto c = compile::compile(example_named("contains_aba"), {});
  const auto model = compile::model_of(c->weights);
  for (auto& item : model->named_parameters())
    if (item.key() == "model.layers.0.attn.b_proj.weight")
      item.value().select(1, 0).sub_(1 / compile::kMixerUnit);  // a logit less
  const auto s = stepping(*c, *model);
  EXPECT_NE(s.without.find("does not follow from the plan"), std::string::npos);
  EXPECT_TRUE(s.heads.empty());
  EXPECT_FALSE(s.places.empty());  // the automaton can be followed all the same
}

TEST(Stepping, KeepsAPageSmall) {
  torch::InferenceMode no_gradients;
  const auto c = compile::compile(group_named("A6"), {});
  const auto s = stepping(*c, *compile::model_of(c->weights));
  EXPECT_NE(s.without.find("too many"), std::string::npos);
  EXPECT_TRUE(s.heads.empty());
  EXPECT_EQ(int64_t(s.places.size()), c->subject.automaton.states);
}

}  // namespace
}  // namespace lrnn::cli
