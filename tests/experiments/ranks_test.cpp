#include "experiments/ranks.h"

#include <gtest/gtest.h>

#include "experiments/effective_rank.h"
#include "experiments/run.h"
#include "experiments/state_walk.h"
#include "ops/torch.h"

namespace lrnn::experiments {
namespace {

using torch::Tensor;

// exp of the entropy, worked out by hand.
TEST(EffectiveRank, OfKnownMatrices) {
  const auto of = [](const Tensor& matrix) { return effective_rank(matrix).item<double>(); };
  EXPECT_NEAR(of(torch::tensor({{3.0, 0.0}, {0.0, 1.0}})), 1.7547653506, 1e-9);
  EXPECT_NEAR(of(torch::eye(7)), 7, 1e-9);
  EXPECT_NEAR(of(torch::ones({5, 3})), 1, 1e-9);
  EXPECT_EQ(of(torch::zeros({4, 4})), 0);
  const Tensor x = torch::randn({2, 3, 6, 4}, torch::kFloat64);
  const Tensor all = effective_rank(x);
  ASSERT_EQ(all.sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_NEAR(all[1][2].item<double>(), of(x[1][2]), 1e-12);
  EXPECT_NEAR(of(1e6 * x[0][0]), of(x[0][0]), 1e-9) << "no factor changes it";
  EXPECT_NEAR(of(x[0][0].t()), of(x[0][0]), 1e-9);
}

model::ModelPtr with_mixer(const std::string& mixer) {
  const auto config = read_config(
      LRNN_SOURCE_DIR "/configs/tiny.yaml",
      {"model.mixer=" + mixer, "model.width=12", "model.layers=2", "model.init.std=0.5"});
  return std::make_shared<model::Model>(config.model, 9, 3);
}

// What the walk makes of what a mixer tells is the state that the mixer leaves, for every mixer
// with a matrix state. In pieces, as long sequences are read.
TEST(StateWalk, EndsWhereTheMixerDoes) {
  const torch::InferenceMode no_gradients;
  for (const char* mixer : {"{name: delta_product, heads: 2, key_dim: 8, value_dim: 5, "
                            "householders: 3, range: [-1, 1], "
                            "forget_gate: true}",
                            "{name: delta_product, heads: 2, conv: 0, initial_state: true}",
                            "{name: gla, heads: 2, range: [-1, 1]}",
                            "{name: rwkv7, heads: 3, head_dim: 4}", "{name: mlstm, heads: 2}"}) {
    const auto model = with_mixer(mixer);
    for (auto& item : model->named_parameters())  // gates and first states that are not trivial
      if (item.value().dim() == 1 || item.key().ends_with("initial_state"))
        item.value().add_(torch::rand_like(item.value()));
    model::State state;
    std::map<int64_t, StateWalk> walks;
    std::map<int64_t, Tensor> before, after;
    for (const int64_t length : {5, 1, 7}) {
      std::map<int64_t, Observed> told;
      mixers::Context context;
      context.observe = [&](const std::string& name, const Tensor& value) {
        if (name.starts_with("layers.")) told[name[7] - '0'][name.substr(9)] = value;
      };
      model->forward(torch::randint(9, {1, length}, torch::kInt64), state, context);
      for (const auto& [layer, what] : told) {
        ASSERT_TRUE(StateWalk::possible(what)) << mixer;
        int64_t looks = 0;
        walks[layer].read(what,
                          [&, layer = layer](const Tensor& S) { ++looks, before[layer] = S; });
        EXPECT_EQ(looks, length * StateWalk::steps(what)) << mixer;
      }
    }
    // One more token: what the walk sees before it is the state after the last.
    std::map<int64_t, Observed> told;
    mixers::Context context;
    context.observe = [&](const std::string& name, const Tensor& value) {
      if (name.starts_with("layers.")) told[name[7] - '0'][name.substr(9)] = value;
    };
    model::State last = state;
    model->forward(torch::zeros({1, 1}, torch::kInt64), last, context);
    for (int64_t layer = 0; layer < 2; ++layer) {
      bool first = true;
      walks[layer].read(told[layer], [&](const Tensor& S) {
        if (first) after[layer] = S.clone();
        first = false;
      });
      // A multiple is as good: mLSTM's is scaled by its stabiliser and K^-1/2.
      const Tensor want = state[size_t(layer)][0][0], got = after[layer];
      const Tensor scale = want.flatten(1).norm(2, 1, true).unsqueeze(-1);
      EXPECT_TRUE(torch::allclose(got / got.flatten(1).norm(2, 1, true).unsqueeze(-1), want / scale,
                                  1e-4, 1e-5))
          << mixer << ", layer " << layer;
    }
  }
}

// A task whose sequences are what the test says.
class Fixed final : public tasks::Task {
 public:
  int64_t vocabulary() const override { return 9; }
  double chance() const override { return 0; }
  tasks::Score score() const override { return tasks::Score::kAnswer; }
  tasks::Example sample(uint64_t, tasks::Split, uint64_t index, Range length) const override {
    tasks::Example out;
    for (int64_t t = 0; t < length.hi; ++t) out.input.push_back((t * t + 3 * int64_t(index)) % 9);
    out.target.assign(out.input.size(), -1);
    return out;
  }
  std::string word(int64_t) const override { return ""; }
};

// Every update once, whatever pieces a sequence is read in; every n-th token is a choice of them;
// several sequences are averaged.
TEST(Ranks, AlongASequence) {
  const auto model =
      with_mixer("{name: delta_product, heads: 2, key_dim: 8, value_dim: 5, householders: 2}");
  const Fixed task;
  RankOptions how;
  how.length = 1100;  // beyond two pieces
  const auto all = ranks(*model, task, how);
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].heads.size(), 4u);
  const auto& head = all[0].heads[3];
  EXPECT_EQ(head.layer, 2);
  EXPECT_EQ(head.head, 2);
  EXPECT_EQ(head.most, 5);
  EXPECT_EQ(head.steps, 2);
  ASSERT_EQ(head.rank.size(), 2200u);
  EXPECT_EQ(head.rank[0], 0) << "nothing is written yet";
  EXPECT_NEAR(head.rank[1], 1, 1e-3) << "one outer product";
  for (const double r : head.rank) EXPECT_LE(r, 5.0001);

  how.every = 100;
  const auto some = ranks(*model, task, how);
  ASSERT_EQ(some[0].heads[3].rank.size(), 22u);
  EXPECT_NEAR(some[0].heads[3].rank[21], head.rank[2001], 1e-9);

  how.samples = 2;
  const auto both = ranks(*model, task, how);
  EXPECT_EQ(both[0].sequences, 2);
  EXPECT_NE(both[0].heads[3].rank[21], some[0].heads[3].rank[21]);
}

TEST(Ranks, NoneOfAttention) {
  RankOptions how;
  how.length = 4;
  EXPECT_TRUE(ranks(*with_mixer("{name: attention}"), Fixed(), how)[0].heads.empty());
  EXPECT_TRUE(ranks(*with_mixer("{name: mamba}"), Fixed(), how)[0].heads.empty());
}

}  // namespace
}  // namespace lrnn::experiments
