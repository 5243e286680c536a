#include "training/adamw.h"

#include <ATen/Parallel.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include "base/error.h"
#include "tests/close.h"

namespace lrnn::training {
namespace {

using torch::Tensor;

// Three layers with biases, sizes that fill no vector, and one parameter of several pieces.
struct Net : torch::nn::Module {
  Net() {
    torch::manual_seed(5);
    a = register_module("a", torch::nn::Linear(7, 33));
    b = register_module("b", torch::nn::Linear(33, 500));
    c = register_module("c", torch::nn::Linear(500, 3));
  }
  Tensor loss(int64_t step) {
    torch::manual_seed(100 + step);
    const Tensor x = torch::randn({16, 7});
    return 10 * (c(b(a(x).tanh()).tanh()) - x.slice(1, 0, 3).sin()).square().mean();
  }
  torch::nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
};

// One thread: for nets this small a team of threads only waits.
class AdamWTest : public testing::Test {
 protected:
  AdamWTest() { at::set_num_threads(1); }
  ~AdamWTest() override { at::set_num_threads(before_); }

 private:
  const int before_ = at::get_num_threads();
};

bool is_weight(const std::string& name) { return name.ends_with("weight"); }

TrainConfig config(double decay = 0.1) {
  TrainConfig train;
  train.weight_decay = decay, train.betas = {0.9, 0.98}, train.eps = 1e-8;
  return train;
}

std::vector<Tensor> train(Net& net, AdamW& optimiser, int64_t from, int64_t to, double limit = 0) {
  for (int64_t step = from; step < to; ++step) {
    optimiser.zero_grad();
    net.loss(step).backward();
    optimiser.step(1e-3 * double(step % 5), AdamW::clip(optimiser.grad_norm(), limit));
  }
  std::vector<Tensor> values;
  for (const auto& p : net.parameters()) values.push_back(p.detach().clone());
  return values;
}

TEST_F(AdamWTest, FollowsTorch) {
  for (const double limit : {0.0, 0.5}) {
    Net ours, theirs;
    AdamW optimiser(ours, config(), is_weight);
    std::vector<Tensor> weights, rest;
    for (const auto& item : theirs.named_parameters())
      (is_weight(item.key()) ? weights : rest).push_back(item.value());
    auto options = torch::optim::AdamWOptions(1e-3).betas({0.9, 0.98}).eps(1e-8);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(weights,
                        std::make_unique<torch::optim::AdamWOptions>(options.weight_decay(0.1)));
    groups.emplace_back(rest,
                        std::make_unique<torch::optim::AdamWOptions>(options.weight_decay(0)));
    torch::optim::AdamW reference(groups, options);
    for (int64_t step = 0; step < 50; ++step) {
      reference.zero_grad();
      theirs.loss(step).backward();
      if (limit > 0) torch::nn::utils::clip_grad_norm_(theirs.parameters(), limit);
      for (auto& group : reference.param_groups())
        static_cast<torch::optim::AdamWOptions&>(group.options()).lr(1e-3 * double(step % 5));
      reference.step();
    }
    const auto got = train(ours, optimiser, 0, 50, limit);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_CLOSE_TO(theirs.named_parameters()[i].key(), got[i], theirs.parameters()[i], 1e-6);
  }
}

TEST_F(AdamWTest, OneStepInNumbers) {
  struct One : torch::nn::Module {
    Tensor p = register_parameter("p", torch::tensor({2.f, -1.f, 0.5f}));
  } one;
  auto train = config(0.5);
  train.betas = {0.9, 0.999};
  AdamW optimiser(one, train, [](const std::string&) { return true; });
  one.p.mutable_grad().copy_(torch::tensor({4.f, -0.1f, 0.f}));
  optimiser.step(0.1);
  // p (1 - 0.05) - 0.1 g/|g|: the first step is as long as the rate, whatever the gradient.
  EXPECT_CLOSE_TO("p", one.p, torch::tensor({1.8f, -0.85f, 0.475f}), 1e-6);
  EXPECT_EQ(optimiser.steps(), 1);
}

TEST_F(AdamWTest, ARateOfZeroMovesTheMomentsOnly) {
  Net net;
  AdamW optimiser(net, config(), is_weight);
  const Tensor before = net.a->weight.detach().clone();
  net.loss(0).backward();
  optimiser.step(0);
  EXPECT_TRUE(net.a->weight.equal(before));
  EXPECT_GT(optimiser.state().at("m").abs().sum().item<double>(), 0);
}

TEST_F(AdamWTest, SameBitsForAnyNumberOfThreads) {
  std::vector<Tensor> want;
  double norm = 0;
  for (const int threads : {1, 1, 2, 3}) {
    at::set_num_threads(threads);
    Net net;
    AdamW optimiser(net, config(), is_weight);
    for (int step = 0; step < 5; ++step) {
      torch::manual_seed(step);
      for (auto& p : net.parameters()) p.mutable_grad().copy_(torch::randn_like(p));
      optimiser.step(1e-2, AdamW::clip(optimiser.grad_norm(), 1));
    }
    std::vector<Tensor> got = net.parameters();
    if (want.empty()) want = got, norm = optimiser.grad_norm();
    EXPECT_EQ(optimiser.grad_norm(), norm);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(want[i])) << threads;
  }
}

TEST_F(AdamWTest, TheNormIsOfAllGradients) {
  Net net;
  AdamW optimiser(net, config(), is_weight);
  net.loss(0).backward();
  double squares = 0;
  for (const auto& p : net.parameters())
    squares += p.grad().to(torch::kFloat64).square().sum().item<double>();
  EXPECT_NEAR(optimiser.grad_norm(), std::sqrt(squares), 1e-12 * std::sqrt(squares));
  EXPECT_EQ(AdamW::clip(3, 0), 1);
  EXPECT_EQ(AdamW::clip(3, 4), 1);
  EXPECT_NEAR(AdamW::clip(3, 1.5), 0.5, 1e-6);
}

TEST_F(AdamWTest, NamesTheFirstGradientThatIsNotFinite) {
  Net net;
  AdamW optimiser(net, config(), is_weight);
  net.loss(0).backward();
  EXPECT_EQ(optimiser.first_nonfinite(), "");
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    net.c->bias.mutable_grad()[1] = bad;
    net.b->weight.mutable_grad()[499][32] = bad;
    EXPECT_FALSE(std::isfinite(optimiser.grad_norm()));
    EXPECT_EQ(optimiser.first_nonfinite(), "b.weight");
  }
  optimiser.zero_grad();
  EXPECT_EQ(optimiser.grad_norm(), 0);
  net.a->bias.mutable_grad()[0] = 1e30f;  // its square is no float, but it is a number
  EXPECT_TRUE(std::isfinite(optimiser.grad_norm()));
}

TEST_F(AdamWTest, GoesOnFromItsState) {
  Net whole, first, second;
  AdamW a(whole, config(), is_weight), b(first, config(), is_weight);
  const auto want = train(whole, a, 0, 20);
  const auto half = train(first, b, 0, 9);
  const auto state = b.state();
  for (size_t i = 0; i < half.size(); ++i) {
    torch::NoGradGuard no_grad;
    second.parameters()[i].copy_(half[i]);
  }
  AdamW c(second, config(), is_weight);
  c.load(state, "here");
  const auto got = train(second, c, 9, 20);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(got[i].equal(want[i]));
}

TEST_F(AdamWTest, AStateThatDoesNotFitIsAnError) {
  Net net;
  AdamW optimiser(net, config(), is_weight);
  const auto error_of = [&](std::map<std::string, Tensor> state) -> std::string {
    try {
      optimiser.load(state, "run/step_10");
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  auto state = optimiser.state();
  state.erase("v");
  EXPECT_EQ(error_of(state), "run/step_10: the optimiser's 'v' is missing");
  state = optimiser.state(), state["m"] = torch::zeros({3});
  EXPECT_NE(error_of(state).find("run/step_10: the optimiser's 'm' must hold"), std::string::npos);
}

// Gradients that were taken away or replaced are found again.
TEST_F(AdamWTest, FindsReplacedGradients) {
  Net whole, other;
  AdamW a(whole, config(), is_weight), b(other, config(), is_weight);
  whole.loss(0).backward(), a.step(1e-2);
  other.zero_grad(true);
  other.loss(0).backward(), b.step(1e-2);
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(whole.parameters()[i].equal(other.parameters()[i]));
  b.zero_grad();
  EXPECT_EQ(b.grad_norm(), 0);
}

TEST_F(AdamWTest, TiedParametersMoveOnce) {
  struct Tied : torch::nn::Module {
    Tensor p = register_parameter("p", torch::ones({3}));
    Tensor q = register_parameter("q", p);
  } tied;
  AdamW optimiser(tied, config(0), [](const std::string&) { return false; });
  (tied.p + tied.q).sum().backward();
  optimiser.step(0.5);
  EXPECT_TRUE(tied.p.is_same(tied.q));
  EXPECT_CLOSE_TO("p", tied.p, torch::full({3}, 0.5), 1e-6);
}

// Two layers that are read as one, and one that does not fill whole lines of memory.
struct Packed : torch::nn::Module {
  struct Layers : torch::nn::Module, mixers::HasPacks {
    Layers() {
      for (const char* name : {"a", "b", "odd", "last"})
        of.push_back(register_module(
            name, std::make_shared<mixers::Linear>(8, std::string(name) == "odd" ? 3 : 16)));
      good = mixers::Pack({of[0], of[1]}), gap = mixers::Pack({of[2], of[3]});
      for (auto& p : parameters()) torch::nn::init::normal_(p);
    }
    std::vector<mixers::Pack*> packs() override { return {&good, &gap}; }
    std::vector<std::shared_ptr<mixers::Linear>> of;
    mixers::Pack good, gap;
  };
  Packed() { layers = register_module("layers", std::make_shared<Layers>()); }
  std::shared_ptr<Layers> layers;
};

TEST_F(AdamWTest, TellsLayersWhereTheyAreOne) {
  Packed net;
  auto& layers = *net.layers;
  EXPECT_FALSE(layers.good.read().whole.defined()) << "before";
  AdamW optimiser(net, config(), is_weight);
  const auto weights = [&] { return torch::cat({layers.of[0]->weight, layers.of[1]->weight}); };
  EXPECT_TRUE(torch::equal(layers.good.read().whole, weights()));
  EXPECT_FALSE(layers.gap.read().whole.defined()) << "they do not lie end to end";
  // It is the memory itself: updates are seen.
  optimiser.zero_grad();
  layers.of[1]->forward(torch::randn({4, 8})).sum().backward();
  optimiser.step(0.1);
  EXPECT_TRUE(torch::equal(layers.good.read().whole, weights()));
  // Who moves a parameter is noticed.
  const torch::NoGradGuard no_grad;
  layers.of[0]->weight.set_data(layers.of[0]->weight.clone());
  EXPECT_FALSE(layers.good.read().whole.defined());
}

TEST_F(AdamWTest, LendsCopiesOfTheWeights) {
  Packed net;
  auto& layers = *net.layers;
  AdamW optimiser(net, config(), is_weight);
  {
    const AdamW::Copies copies(optimiser, torch::kBFloat16);
    for (const auto& layer : layers.of)
      EXPECT_TRUE(torch::equal(layer->copy, layer->weight.to(torch::kBFloat16)));
    EXPECT_TRUE(
        torch::equal(layers.good.read().whole_copy, layers.good.read().whole.to(torch::kBFloat16)));
    EXPECT_TRUE(layers.of[0]->copy.requires_grad());
  }
  EXPECT_FALSE(layers.of[0]->copy.defined());
  EXPECT_FALSE(layers.good.read().whole_copy.defined());
}

// Written out once more, and unlike the weights unmoved by them.
TEST_F(AdamWTest, AveragesTheWeights) {
  auto averaged = config();
  averaged.ema = 0.9;
  Net net, plain;
  AdamW optimiser(net, averaged, is_weight), other(plain, config(), is_weight);
  Tensor want = net.a->weight.detach().clone();
  for (int64_t step = 0; step < 30; ++step) {
    train(net, optimiser, step, step + 1), train(plain, other, step, step + 1);
    const double t = double(step + 1), d = std::min(0.9, (1 + t) / (10 + t));
    want = d * want + (1 - d) * net.a->weight.detach();
  }
  EXPECT_TRUE(torch::equal(net.b->weight, plain.b->weight)) << "training reads no average";
  EXPECT_FALSE(other.average().any());
  const Tensor before = net.a->weight.detach().clone();
  {
    const Average::Shown shown(optimiser.average());
    EXPECT_LE((net.a->weight - want).abs().max().item<double>(), 1e-6);
    EXPECT_GT((net.a->weight - before).abs().max().item<double>(), 1e-4);
  }
  EXPECT_TRUE(torch::equal(net.a->weight, before)) << "shown for a while only";
}

TEST_F(AdamWTest, AnAverageGoesOnFromACheckpoint) {
  auto averaged = config();
  averaged.ema = 0.99;
  Net whole, halves;
  AdamW all(whole, averaged, is_weight), first(halves, averaged, is_weight);
  train(whole, all, 0, 20), train(halves, first, 0, 10);
  Net rest;  // with other weights, as a checkpoint of averages has
  AdamW second(rest, averaged, is_weight);
  second.load(first.state(), "memory");
  EXPECT_EQ(train(rest, second, 10, 20).size(), rest.parameters().size());
  EXPECT_TRUE(torch::equal(rest.b->weight, whole.b->weight));
  EXPECT_TRUE(torch::equal(second.average().values(), all.average().values()));
  auto state = first.state();
  state.erase("average");
  EXPECT_THROW(second.load(state, "memory"), Error);
}

// Kernels [C,1,W] of short convolutions beside a matrix and one that only looks like them.
struct Kernels : torch::nn::Module {
  Kernels() {
    torch::manual_seed(3);
    conv = register_parameter("conv", torch::randn({5, 1, 4}));
    one = register_parameter("one", torch::randn({5, 1, 1}));
    matrix = register_parameter("matrix", torch::randn({5, 4}));
  }
  Tensor conv, one, matrix;
};

TEST_F(AdamWTest, BringsPastTapsTo0AndNothingElse) {
  auto train = config(0);
  Kernels with, without;
  AdamW other(without, train, is_weight);
  train.tap_decay = 2;
  AdamW optimiser(with, train, is_weight);
  const auto step = [](Kernels& net, AdamW& optimiser) {
    optimiser.zero_grad();
    (net.conv.sum() + net.one.sum() + net.matrix.sum()).backward();
    optimiser.step(0.05);
  };
  step(with, optimiser), step(without, other);
  // The first update is lr; the rate of shrinking is lr/(1-b1) then.
  const Tensor past = without.conv.detach().slice(2, 0, 3);
  const Tensor expected = past.sign() * (past.abs() - 1.0).clamp_min(0);
  EXPECT_CLOSE("past taps", with.conv.slice(2, 0, 3), expected);
  EXPECT_TRUE(torch::equal(with.conv.slice(2, 3), without.conv.slice(2, 3))) << "the present token";
  EXPECT_TRUE(torch::equal(with.one, without.one));
  EXPECT_TRUE(torch::equal(with.matrix, without.matrix));
  EXPECT_GT(with.conv.slice(2, 0, 3).eq(0).sum().item<int64_t>(), 0) << "exactly";
}

}  // namespace
}  // namespace lrnn::training
