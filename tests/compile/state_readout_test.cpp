#include "compile/state_readout.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "ops/torch.h"
#include "tests/compile/suite.h"

namespace lrnn::compile {
namespace {

struct Read {
  std::vector<int64_t> got, want;  // states after each letter
};

// Some random letters after what stands before every word; each position is read off.
Read read_states(const Compiled& c, model::Model& model, uint64_t seed, int64_t letters) {
  const auto& a = c.subject.automaton;
  auto tokens = tokens_of(c).before;
  const auto before = tokens.size();
  Random random(seed, 0, 0);
  Read out;
  int64_t state = a.start;
  for (int64_t t = 0; t < letters; ++t) {
    tokens.push_back(int64_t(random.below(uint64_t(a.symbols))));
    out.want.push_back(state = a.step(state, tokens.back()));
  }
  torch::Tensor stream;
  mixers::Context context;
  context.observe = [&](const std::string& name, const torch::Tensor& value) {
    if (name == "stream") stream = value;
  };
  model::State carried;
  torch::InferenceMode no_gradients;
  model.forward(torch::tensor(tokens).unsqueeze(0), carried, context);
  out.got = StateReadout(c).states(stream);
  out.got.erase(out.got.begin(), out.got.begin() + ptrdiff_t(before));
  return out;
}

void expect_states(const std::string& name, const Options& options) {
  const auto c = compile(example(name), options);
  ASSERT_TRUE(c->subject.recogniser) << name;
  const auto model = model_of(c->weights);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const auto read = read_states(*c, *model, seed, 60);
    EXPECT_EQ(read.got, read.want) << name;
  }
}

TEST(StateReadout, NamesTheStateOfARecogniser) {
  // Groups, flip-flops, cascades with and without groups, the last letters, parts side by side.
  for (const char* name :
       {"parity", "flip_flop", "tomita3", "dyck1_3", "mod3_reset", "ends_with_aba",
        "third_from_end", "even_pairs", "two_parities_reset", "tomita5", "cycle_navigation"})
    expect_states(name, {});
}

TEST(StateReadout, InEveryProfileAndWithPlansThatDrift) {
  for (const auto profile : {Profile::kNativeBos, Profile::kFla, Profile::kFp64}) {
    Options options;
    options.profile = profile;
    expect_states("tomita3", options);
  }
  Options options;
  options.limits.drift = true;
  options.limits.householders = 1;
  expect_states("mod5", options);  // two layers of single reflections
}

// It is the model that is read, not the automaton: another start in its weights is another state.
TEST(StateReadout, FollowsTheWeights) {
  const auto c = compile(example("parity"), {});
  const auto model = model_of(c->weights);
  torch::NoGradGuard no_gradients;
  auto start = model->named_parameters()["model.layers.0.attn.initial_state"];
  start.copy_(start.flip({1}).clone());  // the two rows of each copy change places
  const auto read = read_states(*c, *model, 0, 30);
  for (size_t t = 0; t < read.got.size(); ++t) EXPECT_EQ(read.got[t], 1 - read.want[t]);
}

}  // namespace
}  // namespace lrnn::compile
