#include "base/error.h"
#include "experiments/generate.h"
#include "model/weight_copies.h"
#include "ops/draw_token/draw_token.h"
#include "ops/gpu.h"
#include "ops/linears/thin_linear.h"
#include "tests/close.h"
#include "tests/cuda/device.h"
#include "tests/ops/draw_token_cases.h"
#include "training/precision.h"

namespace lrnn::experiments {
namespace {

using torch::Tensor;
struct GenerateOnGpu : OnGpu {};

TEST_F(GenerateOnGpu, DrawsEqualTheDefinition) {
  ops::for_draws([](const Tensor& logits, const Tensor& u, const ops::Drawing& how) {
    const auto want = ops::draw_tokens_definition(logits, u, how);
    for (int again = 0; again < 2; ++again) {
      const auto got = ops::draw_tokens(logits.cuda(), u.cuda(), how).cpu();
      EXPECT_TRUE(torch::equal(got, want)) << logits.sizes() << " " << how.temperature << " "
                                           << how.top_k << " " << how.top_p << "\n"
                                           << got << want;
    }
  });
}

// A vocabulary as models have it, and rows that are no whole tensor.
TEST_F(GenerateOnGpu, DrawsEqualTheDefinitionOfManyRows) {
  torch::manual_seed(1);
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16}) {
    const Tensor logits = torch::randn({64, 1, 32100}).to(dtype).narrow(2, 0, 32000).squeeze(1),
                 u = torch::rand(64, torch::kFloat64);
    for (const ops::Drawing& how : std::vector<ops::Drawing>{{}, {.8, 40, .95}, {.top_p = .9}}) {
      const Tensor wide = torch::zeros({64, 32100}, torch::dtype(dtype).device(torch::kCUDA)),
                   rows = wide.narrow(1, 0, 32000);
      rows.copy_(logits);
      EXPECT_TRUE(torch::equal(ops::draw_tokens(rows, u.cuda(), how).cpu(),
                               ops::draw_tokens_definition(logits, u, how)));
    }
  }
}

TEST_F(GenerateOnGpu, ThinProductsEqualTheDefinition) {
  torch::manual_seed(2);
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16})
    for (const int64_t rows : {1, 2, 3, 4, 5})
      for (const auto& [D, n] : std::vector<std::pair<int64_t, int64_t>>{
               {8, 1}, {1024, 3080}, {2816, 1025}, {264, 7}, {12, 5}, {1032, 33}}) {
        SCOPED_TRACE(cat(rows, " ", D, " ", n, " ", dtype));
        const Tensor x = torch::randn({rows, D}, torch::kFloat64).to(torch::kBFloat16),
                     w = torch::randn({n, D}, torch::kFloat64).to(torch::kBFloat16),
                     xs = x.to(dtype).cuda(), ws = w.to(dtype).cuda();
        EXPECT_EQ(ops::is_thin(xs, ws), rows <= 4 && D * xs.element_size() % 16 == 0);
        const Tensor got = ops::thin_linear(xs, ws);
        EXPECT_CLOSE_TO("y", got,
                        ops::thin_linear_definition(x.to(torch::kFloat64), w.to(torch::kFloat64)),
                        tolerance(dtype));
        EXPECT_TRUE(torch::equal(got, ops::thin_linear(xs, ws)));
      }
}

model::ModelPtr language_model(const std::string& mixer, int64_t width = 64) {
  const auto config = read_config(
      LRNN_SOURCE_DIR "/configs/tiny.yaml",
      {"model.mixer=" + mixer, cat("model.width=", width), "model.layers=3", "model.init.std=0.3"});
  return std::make_shared<model::Model>(config.model, 1200, 3);
}
const char* const kDeltaNet = "{name: delta_product, heads: 2, key_dim: 32, householders: 1}";

using Texts = std::vector<std::vector<int64_t>>;
Texts texts(model::Model& model, const std::string& precision, const GenerateOptions& how,
            const std::vector<int64_t>& prompt = {3, 1, 4, 1, 5}) {
  Texts out(static_cast<size_t>(how.sequences));
  generate(model, precision, prompt, how,
           [&](int64_t s, int64_t token) { return out[size_t(s)].push_back(token), true; });
  return out;
}

TEST_F(GenerateOnGpu, RecordedIsEagerAndTheSameAgain) {
  for (const char* mixer :
       {kDeltaNet, "{name: delta_product, heads: 2, key_dim: 16, householders: 2, conv: 0}",
        "{name: gla, heads: 2}", "{name: mamba, state_dim: 8}", "{name: attention, heads: 2}"})
    for (const char* precision : {"float32", "bfloat16"})
      for (const int64_t sequences : {1, 3, 40}) {
        SCOPED_TRACE(cat(mixer, " ", precision, " ", sequences));
        const auto model = language_model(mixer);
        const auto stream = ops::gpu()->own_stream();
        model->to(torch::kCUDA);
        GenerateOptions how{.sequences = sequences, .tokens = 70};
        how.drawing = {.temperature = .9, .top_k = 200, .top_p = .95};
        const auto recorded = texts(*model, precision, how), again = texts(*model, precision, how),
                   short_prompt = texts(*model, precision, how, {7});
        how.record = false;
        EXPECT_EQ(recorded, again);
        EXPECT_EQ(recorded, texts(*model, precision, how));
        EXPECT_EQ(short_prompt, texts(*model, precision, how, {7}));
        for (const auto& text : recorded) EXPECT_EQ(text.size(), 70u);
      }
}

// What is said does not depend on how many tokens are drawn ahead.
TEST_F(GenerateOnGpu, TokensBehindTheEndAreDropped) {
  const auto model = language_model(kDeltaNet);
  const auto stream = ops::gpu()->own_stream();
  model->to(torch::kCUDA);
  const auto whole = texts(*model, "bfloat16", {.sequences = 3, .tokens = 60});
  Texts some(3);
  generate(*model, "bfloat16", {3, 1, 4, 1, 5}, {.sequences = 3, .tokens = 60},
           [&](int64_t s, int64_t token) {
             some[size_t(s)].push_back(token);
             return int64_t(some[size_t(s)].size()) < 5 + 13 * s;
           });
  for (size_t s = 0; s < 3; ++s) {
    ASSERT_EQ(some[s].size(), 5 + 13 * s);
    EXPECT_TRUE(std::equal(some[s].begin(), some[s].end(), whole[s].begin()));
  }
  for (const int64_t tokens : {1, 5, 16, 17, 33}) {
    const auto few = texts(*model, "bfloat16", {.sequences = 3, .tokens = tokens});
    ASSERT_EQ(int64_t(few[1].size()), tokens);
    EXPECT_TRUE(std::equal(few[1].begin(), few[1].end(), whole[1].begin()));
  }
}

TEST_F(GenerateOnGpu, GreedyIsTheArgmaxOfTheWholeAndTheCpus) {
  const auto model = language_model(kDeltaNet);
  GenerateOptions how{.tokens = 50};
  how.drawing.temperature = 0;
  const auto cpu = texts(*model, "float32", how)[0];
  const auto stream = ops::gpu()->own_stream();
  model->to(torch::kCUDA);
  const auto gpu = texts(*model, "float32", how)[0];
  EXPECT_EQ(cpu, gpu);
  std::vector<int64_t> text = {3, 1, 4, 1, 5};
  text.insert(text.end(), gpu.begin(), gpu.end());
  const torch::InferenceMode no_gradients;
  model::State state;
  const Tensor best =
      model->forward(torch::tensor(text).unsqueeze(0).cuda(), state).argmax(-1)[0].cpu();
  for (size_t i = 0; i < gpu.size(); ++i)
    EXPECT_EQ(best[int64_t(4 + i)].item<int64_t>(), gpu[i]) << i;
}

TEST_F(GenerateOnGpu, WeightCopiesChangeNothing) {
  const auto model = language_model(kDeltaNet);
  model->to(torch::kCUDA);
  const torch::InferenceMode no_gradients;
  const Tensor tokens = torch::arange(200).view({4, 50}).cuda();
  for (const char* precision : {"float32", "bfloat16"}) {
    const training::Precision guard(precision, torch::kCUDA);
    model::State a, b;
    const Tensor want = model->forward(tokens, a);
    const model::WeightCopies copies(
        *model, std::string(precision) == "bfloat16" ? torch::kBFloat16 : torch::kFloat32);
    EXPECT_CLOSE_TO(precision, model->forward(tokens, b), want, tolerance(want.scalar_type()));
  }
}

}  // namespace
}  // namespace lrnn::experiments
