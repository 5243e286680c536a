#include "mixers/delta_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/node.h"
#include "ops/torch.h"
#include "tests/close.h"

namespace lrnn::mixers {
namespace {

// Weight[r][c] = .5 sin(.37 r + .71 c + phi) and so on: closed forms, so that anybody can check.
Tensor table(int64_t rows, int64_t columns, double per_row, double per_column, double phase) {
  const auto f64 = torch::TensorOptions(torch::kFloat64);
  return torch::arange(rows, f64).unsqueeze(1) * per_row +
         torch::arange(columns, f64) * per_column + phase;
}

MixerPtr golden_layer(const std::string& switches) {
  const auto mixer = make(4, Section::from_text("name: delta_product\nheads: 2\nkey_dim: 2\n"
                                                "value_dim: 3\n" +
                                                switches));
  mixer->to(torch::kFloat64);
  const std::map<std::string, double> phase = {{"q", .1}, {"k", .2}, {"v", .3}, {"b", .4},
                                               {"a", .5}, {"g", .6}, {"o", .7}};
  const torch::NoGradGuard no_grad;
  for (const auto& item : mixer->named_parameters()) {
    const auto& name = item.key();
    Tensor w = item.value();
    const double phi = phase.count(name.substr(0, 1)) ? phase.at(name.substr(0, 1)) : 0;
    if (name.ends_with("_proj.weight"))
      w.copy_(.5 * table(w.size(0), w.size(1), .37, .71, phi).sin());
    else if (name.ends_with("_conv1d.weight"))
      w.copy_(.4 * table(w.size(0), w.size(2), .29, .53, phi).cos().unsqueeze(1));
    else if (name == "A_log")
      w.copy_(table(1, w.size(0), 0, .1, 0)[0]);
    else if (name == "dt_bias")
      w.copy_(table(1, w.size(0), 0, .1, -.2)[0]);
    else
      w.copy_(table(1, w.size(0), 0, .05, 1)[0]);
  }
  return mixer;
}

Tensor f64(std::vector<double> values, torch::IntArrayRef shape) {
  return torch::tensor(values, torch::kFloat64).view(shape);
}

void expect_golden(const char* what, const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  EXPECT_LE((got - want).abs().max().item<double>(), 6e-11) << what;  // ten printed decimals
}

TEST(DeltaProductLayer, GoldenBothGates) {
  const auto mixer = golden_layer("householders: 2\nforget_gate: true\noutput_gate: true");
  State state;
  expect_golden(
      "y", mixer->forward({table(4, 4, .9, .4, 0).sin().unsqueeze(0), {}}, state),
      f64({-0.2053672897, -0.2507776560, -0.2622464431, -0.2382214043, -1.1403211917, -1.0935099744,
           -0.8986973121, -0.5822501845, -0.9869431516, -0.7766898974, -0.4613153092, -0.0835038580,
           0.0705433053, 0.2369567247, 0.3712991630, 0.4553880014},
          {1, 4, 4}));
  expect_golden(
      "S", state[0],
      f64({-0.1437321919, -0.4889246597, -0.7473506942, 0.0007073205, -0.0993188568, -0.2510887534,
           0.1260619062, -0.0147212877, -0.0698860208, 0.8338896007, 0.6057695372, 0.2397921306},
          {1, 2, 2, 3}));
}

TEST(DeltaProductLayer, GoldenNoGates) {
  const auto mixer = golden_layer("householders: 2");
  State state;
  expect_golden(
      "y", mixer->forward({table(4, 4, .9, .4, 0).sin().unsqueeze(0), {}}, state),
      f64({-2.0677332880, -2.0098167878, -1.6798810139, -1.1225812255, -1.6639747916, -1.3257600507,
           -0.8081099064, -0.1810858773, -1.4787593662, -1.0209965404, -0.4250466226, 0.2284313616,
           -0.3307577336, 0.0589983083, 0.4407692058, 0.7628840591},
          {1, 4, 4}));
}

TEST(DeltaProductLayer, GoldenDeltaNetWithoutConvolution) {
  const auto mixer = golden_layer("conv: 0\nrange: [0, 1]");
  State state;
  expect_golden(
      "y", mixer->forward({table(4, 4, .9, .4, 0).sin().unsqueeze(0), {}}, state),
      f64({2.1499132792, 2.3605977922, 2.2517864681, 1.8382064092, 1.5681246347, 1.2057945434,
           0.6802658173, 0.0626663041, 1.1943570195, 0.7322582630, 0.1710517859, -0.4133057481,
           -1.8919112674, -2.2771089594, -2.3541106360, -2.1124944818},
          {1, 4, 4}));
}

TEST(DeltaProductLayer, FixedBetaIsOneOrTwo) {
  for (const auto& [range, want] : {std::pair("[0, 1]", 1.0), std::pair("[-1, 1]", 2.0)}) {
    const auto mixer = golden_layer(cat("beta: false\nrange: ", range));
    std::map<std::string, Tensor> seen;
    Context context;
    context.observe = [&](const std::string& name, const Tensor& value) { seen[name] = value; };
    State state;
    mixer->forward({table(4, 4, .9, .4, 0).sin().unsqueeze(0), {}}, state, context);
    EXPECT_TRUE(torch::equal(seen.at("beta"), torch::full({1, 4, 1, 2}, want, torch::kFloat64)));
    EXPECT_CLOSE_TO("|k|", seen.at("k").norm(2, -1), torch::ones({1, 4, 1, 2}), 1e-3);
  }
}

TEST(DeltaProductLayer, NamesAndShapesAreFlas) {
  const auto mixer =
      make(10, Section::from_text(
                   "name: delta_product\nheads: 2\nkey_dim: 3\nvalue_dim: 5\nhouseholders: 4\n"
                   "forget_gate: true\noutput_gate: true"));
  std::map<std::string, std::vector<int64_t>> got;
  for (const auto& item : mixer->named_parameters()) got[item.key()] = item.value().sizes().vec();
  const std::map<std::string, std::vector<int64_t>> want = {{"q_proj.weight", {6, 10}},
                                                            {"k_proj.weight", {24, 10}},
                                                            {"v_proj.weight", {40, 10}},
                                                            {"b_proj.weight", {8, 10}},
                                                            {"a_proj.weight", {2, 10}},
                                                            {"A_log", {2}},
                                                            {"dt_bias", {2}},
                                                            {"q_conv1d.weight", {6, 1, 4}},
                                                            {"k_conv1d.weight", {24, 1, 4}},
                                                            {"v_conv1d.weight", {40, 1, 4}},
                                                            {"g_proj.weight", {10, 10}},
                                                            {"o_norm.weight", {5}},
                                                            {"o_proj.weight", {10, 10}}};
  EXPECT_EQ(got, want);
  EXPECT_EQ(mixer->undecayed(), (std::vector<std::string>{"A_log", "dt_bias"}));
}

TEST(DeltaProductLayer, InitialWeightsFollowTheScheme) {
  const Section at =
      Section::from_text("name: delta_product\nheads: 8\nkey_dim: 16\nforget_gate: true");
  const auto weights = [&](const char* scheme, uint64_t seed) {
    const auto mixer = make(128, at);
    mixer->initialise({.scheme = scheme, .gain = 0.17677669529663687, .std = 0.02, .seed = seed});
    std::map<std::string, Tensor> out;
    for (const auto& item : mixer->named_parameters()) out[item.key()] = item.value().detach();
    return out;
  };
  auto w = weights("chomsky", 1);
  const auto largest = [](const Tensor& x) { return x.abs().max().item<double>(); };
  EXPECT_LE(largest(w["q_proj.weight"]), 0.0270633 + 1e-7);  // chomsky 5.1
  EXPECT_GT(largest(w["q_proj.weight"]), 0.0270);
  EXPECT_NEAR(w["q_proj.weight"].std().item<double>(), 0.0270633 / std::sqrt(3.0), 3e-4);
  EXPECT_LE(largest(w["k_conv1d.weight"]), 0.5);
  EXPECT_GT(largest(w["k_conv1d.weight"]), 0.49);
  EXPECT_TRUE(torch::equal(w["o_norm.weight"], torch::ones(16)));
  EXPECT_LE(w["A_log"].max().item<double>(), std::log(16.0));
  const Tensor dt = torch::softplus(w["dt_bias"]);
  EXPECT_GE(dt.min().item<double>(), 0.00099);
  EXPECT_LE(dt.max().item<double>(), 0.1001);
  EXPECT_FALSE(torch::equal(w["q_proj.weight"], w["k_proj.weight"]));

  auto fla = weights("fla", 1);
  EXPECT_NEAR(fla["v_proj.weight"].std().item<double>(), 0.02, 5e-4);
  EXPECT_NEAR(fla["v_proj.weight"].mean().item<double>(), 0, 5e-4);
  EXPECT_GT(largest(fla["v_proj.weight"]), 0.06);
  EXPECT_NEAR(fla["v_conv1d.weight"].std().item<double>(), 0.02, 2e-3);

  EXPECT_FALSE(torch::equal(weights("chomsky", 2)["q_proj.weight"], w["q_proj.weight"]));
  const int threads = torch::get_num_threads();
  torch::set_num_threads(threads == 1 ? 2 : 1);
  for (const auto& [name, value] : weights("chomsky", 1))
    EXPECT_TRUE(torch::equal(value, w[name])) << name;
  torch::set_num_threads(threads);
}

std::string error_of(const std::string& yaml) {
  try {
    make(8, Section::from_text(yaml, "x.yaml"));
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(DeltaProductConfig, NamesTheKeyAndLineOfImpossibleValues) {
  const std::string name = "name: delta_product\n";
  EXPECT_EQ(error_of(name + "heads: 0"), "x.yaml:2: heads must be at least 1, got 0");
  EXPECT_EQ(error_of(name + "householders: 0"), "x.yaml:2: householders must be at least 1, got 0");
  EXPECT_EQ(error_of(name + "key_dim: -1"), "x.yaml:2: key_dim must be at least 1, got -1");
  EXPECT_EQ(error_of(name + "value_dim: -1"),
            "x.yaml:2: value_dim must be at least 1, or 0 for key_dim; got -1");
  EXPECT_EQ(error_of(name + "range: [0, 2]"),
            "x.yaml:2: range must be [0, 1] or [-1, 1], got [0, 2]");
  EXPECT_EQ(error_of(name + "conv: -1"), "x.yaml:2: conv must be at least 0, got -1");
  EXPECT_EQ(error_of(name + "norm_eps: 0"), "x.yaml:2: norm_eps must be positive, got 0");
  EXPECT_EQ(error_of(name + "qk_activation: tanh"),
            "x.yaml:2: qk_activation must be one of silu, relu, elu, none; got 'tanh'");
  EXPECT_EQ(
      error_of("name: delta_net\nhouseholders: 2"),
      "x.yaml:2: householders must be 1 for delta_net, got 2; the mixer delta_product takes more");
  EXPECT_EQ(error_of("name: delta_net\nhouseholders: 1"), "no error");
  EXPECT_TRUE(error_of("name: mambo").starts_with("x.yaml:1: name must be one of delta_product, "))
      << error_of("name: mambo");
  EXPECT_EQ(error_of("heads: 1"), "x.yaml:1: name is needed");
}

// The step sizes for projections x, and their slope; the layer's weight b_proj is 1.
std::pair<Tensor, Tensor> step_sizes(const std::string& step, const std::string& range,
                                     const Tensor& x) {
  const auto mixer =
      make(1, Section::from_text("name: delta_product\nheads: 1\nkey_dim: 2\nconv: 0\n"
                                 "qk_activation: none\nrange: " +
                                 range + "\nstep: " + step));
  mixer->initialise({});
  const torch::NoGradGuard no_grad;
  mixer->named_parameters()["b_proj.weight"].fill_(1);
  Context context;
  Tensor beta;
  context.observe = [&](const std::string& name, const Tensor& value) {
    if (name == "beta") beta = value;
  };
  const torch::AutoGradMode grad(true);
  Tensor input = x.view({1, -1, 1}).clone().requires_grad_();
  State state;
  mixer->forward({input, {}}, state, context);
  const Tensor slope = torch::autograd::grad({beta.sum()}, {input})[0];
  return {beta.detach().flatten(), slope.flatten()};
}

TEST(DeltaProductLayer, StepSizesThatReachTheirEnds) {
  const Tensor x = torch::tensor({-30.0F, -2.5F, -2.0F, -1.0F, 0.0F, 1.0F, 2.0F, 2.5F, 30.0F});
  const Tensor hard = torch::tensor({0.0F, 0.0F, 0.0F, 0.25F, 0.5F, 0.75F, 1.0F, 1.0F, 1.0F});
  for (const double largest : {1.0, 2.0}) {
    const std::string range = largest == 1 ? "[0, 1]" : "[-1, 1]";
    const Tensor soft = largest * x.sigmoid(), slope = largest * x.sigmoid() * (1 - x.sigmoid());
    const auto [sigmoid, sigmoid_slope] = step_sizes("sigmoid", range, x);
    EXPECT_LE((sigmoid - soft).abs().max().item<double>(), 1e-6);
    const auto [cut, cut_slope] = step_sizes("hard_sigmoid", range, x);
    EXPECT_TRUE(torch::equal(cut, largest * hard)) << cut << "to the last bit";
    EXPECT_TRUE(torch::equal(cut_slope.slice(0, 3, 6), torch::full({3}, largest / 4)));
    EXPECT_EQ(cut_slope[1].item<double>(), 0);
    EXPECT_EQ(cut_slope[7].item<double>(), 0);
    const auto [through, through_slope] = step_sizes("straight_through", range, x);
    EXPECT_TRUE(torch::equal(through, cut));
    EXPECT_LE((through_slope - slope).abs().max().item<double>(), 1e-6);
  }
}

TEST(DeltaProductLayer, DecaysItsStepSizesUnlessToldNotTo) {
  const auto undecayed = [](const std::string& more) {
    return make(4, Section::from_text("name: delta_product\nheads: 1\n" + more))->undecayed();
  };
  EXPECT_TRUE(undecayed("").empty());
  EXPECT_EQ(undecayed("beta_decay: false"), std::vector<std::string>{"b_proj.weight"});
  EXPECT_TRUE(undecayed("beta_decay: false\nbeta: false").empty()) << "there is no projection";
}

// What the layer asks of the recurrence, overheard on the way to its kernel.
constexpr auto kOverhear = c10::DispatchKey::TESTING_ONLY_GenericMode;
std::string overheard;
void overhear(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name() == "accuracy") overheard = (*stack)[i].toStringRef();
  const c10::impl::ExcludeDispatchKeyGuard no_more(kOverhear);
  op.callBoxed(*stack);
}
TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(lrnn, TESTING_ONLY_GenericMode, m) {
  m.impl("delta_product_forward", torch::CppFunction::makeFromBoxedFunction<&overhear>());
}

std::string asked_for(const std::string& switches, const std::string& kernel = "") {
  overheard = "nothing";
  const c10::impl::IncludeDispatchKeyGuard listen(kOverhear);
  const auto mixer = make(4, Section::from_text("name: delta_product\nheads: 1\n" + switches));
  mixer->initialise({});
  State state;
  mixer->forward({torch::randn({1, 3, 4}), {}}, state, {.accuracy = kernel});
  return overheard;
}

// Only where no step reflects and something is forgotten is fast good enough by itself.
TEST(DeltaProductLayer, AsksForTheAccuracyItNeeds) {
  EXPECT_EQ(asked_for(""), "accurate");
  EXPECT_EQ(asked_for("range: [0, 1]"), "accurate");
  EXPECT_EQ(asked_for("forget_gate: true"), "accurate");
  EXPECT_EQ(asked_for("forget_gate: true\nbeta: false\nhouseholders: 2"), "accurate");
  EXPECT_EQ(asked_for("forget_gate: true\nrange: [0, 1]"), "fast");
  EXPECT_EQ(asked_for("forget_gate: true\nrange: [0, 1]\nqk_norm: none"), "accurate");
  for (const std::string said : {"fast", "accurate", "exact"}) {
    EXPECT_EQ(asked_for("accuracy: " + said), said);
    EXPECT_EQ(asked_for("forget_gate: true\nrange: [0, 1]\naccuracy: " + said), said);
    EXPECT_EQ(asked_for("accuracy: exact", said), said);  // lrnn eval --accuracy
  }
  EXPECT_THROW(asked_for("accuracy: good"), Error);
}

// A gate per key channel: g = -exp(A_log) softplus(f_proj(x) + dt_bias), as fla's KDA layer has it.
TEST(DeltaProductLayer, GatesOfKeyChannels) {
  const std::string base =
      "name: delta_product\nheads: 2\nkey_dim: 3\nvalue_dim: 4\nforget_gate: true\n";
  const auto mixer = make(6, Section::from_text(base + "gate_per: channel"));
  mixer->initialise({.gain = 1, .seed = 3});
  mixer->to(torch::kFloat64);
  const auto weights = mixer->named_parameters();
  ASSERT_EQ(weights["f_proj.0.weight"].sizes(), (std::vector<int64_t>{4, 6}));
  ASSERT_EQ(weights["f_proj.1.weight"].sizes(), (std::vector<int64_t>{6, 4}));
  ASSERT_EQ(weights["A_log"].numel(), 2);
  ASSERT_EQ(weights["dt_bias"].numel(), 6);
  torch::manual_seed(6);
  const Tensor x = torch::randn({2, 5, 6}, torch::kFloat64);
  Tensor told;
  Context context;
  context.observe = [&](const std::string& name, const Tensor& value) {
    if (name == "log_gate") told = value;
  };
  State state;
  mixer->forward({x, {}}, state, context);
  const Tensor f = x.matmul(weights["f_proj.0.weight"].t()).matmul(weights["f_proj.1.weight"].t());
  const Tensor rate = weights["A_log"].exp().unsqueeze(-1);
  EXPECT_CLOSE("log_gate", told,
               -rate * torch::softplus(f + weights["dt_bias"]).unflatten(-1, {2, 3}));
  EXPECT_GE(rate.min().item<double>(), 1);
  try {
    make(6, Section::from_text("name: delta_product\ngate_per: channel"));
    FAIL() << "there is no gate";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("set forget_gate to true"), std::string::npos) << e.what();
  }
}

// States that share a head's keys and queries are heads with equal ones.
TEST(DeltaProductLayer, SharedKeysAreRepeatedOnes) {
  const std::string more = "householders: 2\nforget_gate: true\noutput_gate: true\n";
  const auto build = [&](int heads, const std::string& last) {
    const auto mixer = make(4, Section::from_text(cat("name: delta_product\nheads: ", heads,
                                                      "\nkey_dim: 2\nvalue_dim: 3\n", more, last)));
    mixer->initialise({.gain = 1, .seed = 3});
    mixer->to(torch::kFloat64);
    return mixer;
  };
  const auto few = build(2, "value_heads: 6"), many = build(6, "");
  const torch::NoGradGuard no_grad;
  for (const auto& item : few->named_parameters()) {
    const auto& name = item.key();
    const bool q = name.starts_with("q_"), k = name.starts_with("k_");
    Tensor w = item.value();
    // Rows are ordered (n h d): every head three times.
    if (q || k) w = w.unflatten(0, {q ? 1 : 2, 2, 2}).repeat_interleave(3, 1).flatten(0, 2);
    many->named_parameters()[name].copy_(w);
  }
  torch::manual_seed(6);
  const Tensor x = torch::randn({2, 7, 4}, torch::kFloat64);
  State a, b;
  const Tensor y = few->forward({x, {}}, a), want = many->forward({x, {}}, b);
  EXPECT_CLOSE("y", y, want);
  EXPECT_CLOSE("state", a[0], b[0]);
}

}  // namespace
}  // namespace lrnn::mixers
