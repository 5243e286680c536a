#include <gtest/gtest.h>

#include <map>

#include "mixers/mixer.h"
#include "ops/torch.h"
#include "tests/close.h"
#include "tests/mixers/key_error.h"

namespace lrnn::mixers {
namespace {

MixerPtr rwkv7(int64_t width, const std::string& fields) {
  const auto mixer = make(width, Section::from_text("name: rwkv7\n" + fields, "x.yaml"));
  mixer->initialise({.scheme = "chomsky", .gain = 1, .std = 0.02, .seed = 1});
  return mixer;
}

// The layer written out with torch alone, one token and one matrix at a time.
Tensor rwkv7_by_hand(const Mixer& mixer, const Tensor& x, int64_t H, double largest) {
  const auto w = mixer.named_parameters();
  const Tensor before =
      torch::cat({torch::zeros_like(x.slice(1, 0, 1)), x.slice(1, 0, x.size(1) - 1)}, 1);
  const auto mixed = [&](const char* name) { return x + (before - x) * w[name].view(-1); };
  const auto heads = [&](const Tensor& y) { return y.unflatten(-1, {H, y.size(-1) / H}); };
  const auto lora = [&](const std::string& name, const Tensor& y, auto&& activation) {
    return activation(y.matmul(w[name + "_lora.lora.0.weight"].t()))
        .matmul(w[name + "_lora.lora.2.weight"].t());
  };
  const auto same = [](const Tensor& y) { return y; };
  const auto tanh = [](const Tensor& y) { return y.tanh(); };
  const auto sigmoid = [](const Tensor& y) { return y.sigmoid(); };
  const Tensor r = heads(mixed("x_r").matmul(w["r_proj.weight"].t()));
  const Tensor decay =
      (-0.6065306597 * (lora("w", mixed("x_w"), tanh) + w["w_lora.lora.2.bias"]).sigmoid()).exp();
  const Tensor k0 = mixed("x_k").matmul(w["k_proj.weight"].t());
  const Tensor v = heads(mixed("x_v").matmul(w["v_proj.weight"].t()));
  const Tensor a = largest * (lora("a", mixed("x_a"), same) + w["a_lora.lora.2.bias"]).sigmoid();
  const Tensor raw = heads(k0 * w["k_k"]), kk = raw / raw.norm(2, -1, true);
  const Tensor k = heads(k0 * (1 + (a - 1) * w["k_a"]));
  const Tensor gate = lora("g", mixed("x_g"), sigmoid);
  const int64_t D = k.size(3);
  Tensor S = torch::zeros({x.size(0), H, D, D}, x.options());
  std::vector<Tensor> o;
  for (int64_t t = 0; t < x.size(1); ++t) {
    const Tensor key = kk.select(1, t).unsqueeze(-1);
    const Tensor step = heads(a).select(1, t).unsqueeze(-1) * key;
    const Tensor A = torch::diag_embed(heads(decay).select(1, t)) - step.matmul(key.mT());
    S = A.matmul(S) + k.select(1, t).unsqueeze(-1) * v.select(1, t).unsqueeze(-2);
    o.push_back(r.select(1, t).unsqueeze(-2).matmul(S).squeeze(-2));
  }
  const Tensor y = torch::stack(o, 1);
  const Tensor centred = y - y.mean(-1, true);
  Tensor out = centred * torch::rsqrt(centred.square().mean(-1, true) + 1e-5 * double(D));
  out = out * heads(w["g_norm.weight"]) + heads(w["g_norm.bias"]);
  out = out + (r * k * w["r_k"]).sum(-1, true) * v;
  return (out.flatten(-2) * gate).matmul(w["o_proj.weight"].t());
}

TEST(Rwkv7, IsTheLayerOfThePaperInBothRanges) {
  for (const int largest : {1, 2}) {
    const auto mixer = rwkv7(6, cat("heads: 2\nhead_dim: 5\nrange: [0, ", largest, "]"));
    mixer->to(torch::kFloat64);
    torch::manual_seed(2);
    {
      const torch::NoGradGuard no_grad;
      for (auto& item : mixer->named_parameters())
        if (item.key() == "r_k" || item.key().ends_with("bias")) item.value().normal_();
    }
    const Tensor x = torch::randn({2, 9, 6}, torch::kFloat64);
    State state;
    std::map<std::string, Tensor> seen;
    Context context;
    context.observe = [&](const std::string& name, const Tensor& value) { seen[name] = value; };
    const Tensor y = mixer->forward({x, {}}, state, context);
    EXPECT_CLOSE_TO("y", y, rwkv7_by_hand(*mixer, x, 2, largest), 1e-9);
    EXPECT_EQ(seen.at("a").max().item<double>() > 1, largest == 2);
    EXPECT_LE(seen.at("a").max().item<double>(), largest);
  }
}

TEST(Rwkv7, NamesAndShapesAreFlas) {
  std::map<std::string, std::vector<int64_t>> got;
  const auto mixer = rwkv7(128, "");
  for (const auto& item : mixer->named_parameters()) got[item.key()] = item.value().sizes().vec();
  std::map<std::string, std::vector<int64_t>> want = {{"k_k", {128}},
                                                      {"k_a", {128}},
                                                      {"r_k", {4, 32}},
                                                      {"w_lora.lora.0.weight", {64, 128}},
                                                      {"w_lora.lora.2.weight", {128, 64}},
                                                      {"w_lora.lora.2.bias", {128}},
                                                      {"a_lora.lora.0.weight", {64, 128}},
                                                      {"a_lora.lora.2.weight", {128, 64}},
                                                      {"a_lora.lora.2.bias", {128}},
                                                      {"g_lora.lora.0.weight", {128, 128}},
                                                      {"g_lora.lora.2.weight", {128, 128}},
                                                      {"g_norm.weight", {128}},
                                                      {"g_norm.bias", {128}}};
  for (const char* name : {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"}) want[name] = {1, 1, 128};
  for (const char* name : {"r", "k", "v", "o"}) want[cat(name, "_proj.weight")] = {128, 128};
  EXPECT_EQ(got, want);
}

TEST(Rwkv7, NamesTheKeyAndLineOfImpossibleValues) {
  const auto error = [](const std::string& fields) { return key_error("rwkv7", fields); };
  EXPECT_EQ(error("head_dim: 0"), "x.yaml:2: head_dim must be at least 1, got 0");
  EXPECT_EQ(error("range: [-1, 1]"), "x.yaml:2: range must be [0, 1] or [0, 2], got [-1, 1]");
  EXPECT_EQ(error("gate_rank: 0"), "x.yaml:2: gate_rank must be at least 1, got 0");
}

// The first block leaves its values, and a later one leans towards them by sigmoid(v_lora).
TEST(Rwkv7, LaterBlocksMixTheirValuesWithTheFirst) {
  const std::string fields = "heads: 2\nhead_dim: 3\nvalue_rank: 4";
  const auto first = rwkv7(6, fields), plain = rwkv7(6, "heads: 2\nhead_dim: 3");
  const auto later = make(6, Section::from_text("name: rwkv7\n" + fields));
  later->place(1);
  later->initialise({.scheme = "chomsky", .gain = 1, .std = 0.02, .seed = 1});
  for (const auto& mixer : {first, plain, later}) mixer->to(torch::kFloat64);
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  for (const auto& item : plain->named_parameters())
    later->named_parameters()[item.key()].copy_(item.value());
  Tensor bias = later->named_parameters()["v_lora.lora.2.bias"];
  const Tensor x = torch::randn({2, 5, 6}, torch::kFloat64);
  const auto run = [&](Mixer& mixer, const Tensor& values) {
    State state;
    const Context context{.first_values = std::make_shared<Tensor>(values)};
    const Tensor y = mixer.forward({x, {}}, state, context);
    return std::pair(y, *context.first_values);
  };
  const auto [y, values] = run(*first, {});
  ASSERT_EQ(values.sizes(), torch::IntArrayRef({2, 5, 6}));
  EXPECT_CLOSE("a first block is a plain one", y, run(*plain, {}).first);
  const Tensor others = torch::randn_like(values);
  bias.fill_(-50);  // its own values alone
  EXPECT_CLOSE("own", run(*later, others).first, run(*plain, {}).first);
  bias.fill_(0);  // half and half
  later->named_parameters()["v_lora.lora.2.weight"].zero_();
  const Tensor half = run(*later, others).first;
  EXPECT_CLOSE("its own and its own", run(*later, run(*first, {}).second).first,
               run(*plain, {}).first);
  EXPECT_GT((half - run(*plain, {}).first).abs().max().item<double>(), 1e-3);
  EXPECT_THROW(run(*later, {}), Error);
}

}  // namespace
}  // namespace lrnn::mixers
