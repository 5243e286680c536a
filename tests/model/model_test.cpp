#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "tests/close.h"
#include "tests/model/configs.h"

namespace lrnn::model {
namespace {

int64_t count(const std::string& yaml, int64_t vocabulary) {
  return Model::blank(config_of(yaml), vocabulary)->parameter_count();
}

const char* kParity = "mixer: {name: delta_net}";  // Profile R is all defaults

TEST(Model, ParameterCountsOfThePapers) {
  EXPECT_EQ(count(kParity, 3), 529856);
  EXPECT_EQ(count(kParity, 10), 531648);
  EXPECT_EQ(count(kParity, 12), 532160);
  EXPECT_EQ(count(cat(kParity, "\nlayers: 3"), 10), 796128);
  EXPECT_EQ(count(cat(kParity, "\nlayers: 3"), 12), 796640);
}

// Without memory a model has the tensors that it has with it.
TEST(Model, ShapesAreThoseOfTheModel) {
  for (const auto& mixer : mixers::all())
    for (const char* dtype : {"float32", "float64"}) {
      const auto config = config_of(
          cat("{width: 32, layers: 1, dtype: ", dtype, ", mixer: {name: ", mixer.name, "}}"));
      const auto model = Model::blank(config, 7), shapes = Model::shapes(config, 7);
      EXPECT_EQ(shapes->parameter_count(), model->parameter_count()) << mixer.name;
      EXPECT_EQ(shapes->state_size(5), model->state_size(5)) << mixer.name;
      const auto own = shapes->named_parameters();
      for (const auto& item : model->named_parameters()) {
        ASSERT_TRUE(own.contains(item.key())) << mixer.name << " " << item.key();
        EXPECT_EQ(own[item.key()].sizes(), item.value().sizes()) << mixer.name << item.key();
        EXPECT_EQ(own[item.key()].dtype(), item.value().dtype()) << mixer.name << item.key();
        EXPECT_TRUE(own[item.key()].is_meta()) << mixer.name << item.key();
        EXPECT_EQ(shapes->decays(item.key()), model->decays(item.key()));
      }
    }
  // Tensors that are made afterwards have memory again.
  EXPECT_FALSE(torch::empty({2}).is_meta());
  EXPECT_THROW(Model::shapes(config_of("{width: 1e9, mixer: {name: attention, head_dim: 5e9}}"), 7),
               Error);
}

TEST(Model, MambaOfThePapers) {
  const std::string parity =
      "norm_eps: 1e-5\nfinal_norm: false\nmlp: {name: none}\ninit: {scheme: mamba}\n"
      "mixer: {name: mamba, conv: 1}";
  EXPECT_EQ(count(parity, 3), 232448);
  EXPECT_EQ(count(parity, 10), 234240);
  EXPECT_EQ(count(parity, 12), 234752);
  const std::string profile_p =
      "final_norm: false\nmlp: {name: none}\nlayers: 3\nmixer: {name: mamba, conv: 4}";
  EXPECT_EQ(count(profile_p, 10), 352384);
  EXPECT_EQ(count(profile_p, 12), 352896);

  Model model(config_of(parity), 12, 3);
  std::map<std::string, Tensor> w;
  for (const auto& item : model.named_parameters()) {
    w[item.key()] = item.value().detach();
    // Norms, biases and the embedding decay; only the transition and the skip do not.
    const bool own = item.key().ends_with(".A_log") || item.key().ends_with(".D");
    EXPECT_EQ(model.decays(item.key()), !own) << item.key();
  }
  EXPECT_FALSE(w.contains("model.norm.weight"));
  EXPECT_NEAR(w["model.embeddings.weight"].std().item<double>(), 1, 0.1);
  const double head = w["lm_head.weight"].abs().max().item<double>();
  EXPECT_LE(head, 0.0883884);
  EXPECT_GT(head, 0.088);
}

std::string xlstm(const char* mixer, const char* mlp) {
  return cat(
      "norm: layer\nnorm_eps: 1.0e-5\ninit: {scheme: xlstm}\ndecay: matrices\nmixer: {name: ",
      mixer, "}\nmlp: {name: ", mlp, "}\n");
}

TEST(Model, ParameterCountsOfXlstm) {
  const std::string mlstm = xlstm("mlstm", "none"), slstm = xlstm("slstm", "geglu");
  const std::vector<int64_t> vocabularies = {3, 10, 12}, m = {219792, 221584, 222096},
                             s = {215680, 217472, 217984};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(count(mlstm, vocabularies[i]), m[i]);
    EXPECT_EQ(count(slstm, vocabularies[i]), s[i]);
  }
}

TEST(Model, XlstmDecaysMatricesButNotTheEmbedding) {
  for (const auto& yaml : {xlstm("mlstm", "none"), xlstm("slstm", "geglu")}) {
    Model model(config_of(yaml), 3, 1);
    for (const auto& item : model.named_parameters()) {
      const auto& name = item.key();
      const bool want = item.value().dim() > 1 && name != "model.embeddings.weight" &&
                        !name.ends_with("attn.bias");
      EXPECT_EQ(model.decays(name), want) << name;
    }
  }
}

TEST(Model, XlstmInitialisation) {
  const auto weights = [](const std::string& yaml) {
    Model model(config_of(yaml), 200, 3);
    std::map<std::string, Tensor> out;
    for (const auto& item : model.named_parameters()) out[item.key()] = item.value().detach();
    return out;
  };
  const auto deviation = [](const Tensor& w) { return w.std().item<double>(); };
  auto s = weights(xlstm("slstm", "geglu")), m = weights(xlstm("mlstm", "none"));
  const std::string first = "model.layers.0.", second = "model.layers.1.";
  for (const std::string& name :
       {std::string("lm_head.weight"), std::string("model.embeddings.weight"),
        second + "mlp.up_proj.weight", first + "attn.if_gates.weight"})
    EXPECT_NEAR(deviation(s[name]), 0.0559017, 1e-3) << name;
  EXPECT_NEAR(deviation(s[first + "mlp.down_proj.weight"]), 0.0883883, 1e-3);
  EXPECT_EQ(s[first + "attn.recurrent"].abs().max().item<double>(), 0);
  const auto f = [&](const std::string& layer) { return s[layer + "attn.bias"].select(1, 1); };
  const auto near = [](const Tensor& got, std::vector<double> want) {
    return (got.to(torch::kFloat64) - torch::tensor(want, torch::kFloat64))
               .abs()
               .max()
               .item<double>() < 1e-4;
  };
  const Tensor at = torch::tensor({0, 1, 2, 31}, torch::kInt64);
  EXPECT_TRUE(near(f(first)[3].index_select(0, at), {5, 0.7168, -0.2733, -7}));
  EXPECT_TRUE(near(f(second)[0].index_select(0, at), {5, 4.9507, 4.8505, -7}));
  EXPECT_EQ(s[first + "attn.bias"].select(1, 3).abs().max().item<double>(), 0);
  EXPECT_NEAR(deviation(m[second + "attn.q_proj.weight"]), 0.0559017, 3e-3);
  EXPECT_NEAR(deviation(m[second + "attn.o_proj.weight"]), 0.1767767, 2e-3);
  EXPECT_TRUE(near(m[first + "attn.f_bias"], {3, 4, 5, 6}));
  EXPECT_EQ(m[first + "attn.f_gate.weight"].abs().max().item<double>(), 0);
  EXPECT_EQ(m["model.norm.weight"].abs().max().item<double>(), 0);
  EXPECT_TRUE(torch::equal(m[first + "attn.skip"], torch::ones(256)));
}

// A block that is computed again in backward would lose the gradient of what it took from the
// first.
TEST(Model, BlocksThatShareValuesAreNotComputedAgain) {
  const auto model = [](const std::string& mixer) {
    return Model::blank(
        config_of("width: 8\nmixer: {name: rwkv7, heads: 2, head_dim: 4" + mixer + "}"), 3);
  };
  EXPECT_NO_THROW(model("")->recompute(Model::Recompute::kBlocks));
  EXPECT_NO_THROW(model(", value_rank: 2")->recompute(Model::Recompute::kNothing));
  EXPECT_THROW(model(", value_rank: 2")->recompute(Model::Recompute::kBlocks), Error);
}

TEST(Model, HybridBlocksAreTheOnesAskedFor) {
  const auto model = Model::blank(
      config_of("layers: 4\nwidth: 8\nmixer: {name: delta_net}\nmlp: {name: none}\n"
                "hybrid: {every: 2, mixer: {name: attention}, mlp: {name: swiglu, hidden: 4}}"),
      3);
  for (const auto& item : model->named_parameters()) {
    const auto& name = item.key();
    const bool odd =
        name.find("layers.1.") != std::string::npos || name.find("layers.3.") != std::string::npos;
    if (name.find(".mlp.") != std::string::npos) {
      EXPECT_TRUE(odd) << name;
    }
    if (name.find("b_proj") != std::string::npos) {
      EXPECT_FALSE(odd) << name;
    }
  }
  EXPECT_EQ(model->state_size(), 2 * (4 * 32 * 32 + 4 * 3 * 128));
  EXPECT_EQ(model->state_size(10) - model->state_size(), 2 * 10 * (2 * 8 + 1));
}

TEST(Model, ParameterCountsOfTheGroups) {
  const std::vector<int64_t> S3 = {398496, 498336, 598176, 698016};
  const std::vector<int64_t> S5 = {427680, 527520, 627360, 727200};
  for (int64_t n = 1; n <= 4; ++n) {
    const std::string yaml =
        cat("layers: 1\nmixer: {name: delta_product, heads: 12, conv: 0, householders: ", n, "}");
    EXPECT_EQ(count(yaml, 13), S3[size_t(n) - 1]);  // six elements and seven specials
    EXPECT_EQ(count(yaml, 127), S5[size_t(n) - 1]);
  }
}

TEST(Model, DeltaNet13B) {
  const auto model = Model::blank(
      config_of("width: 2048\nlayers: 24\nmixer: {name: delta_net, heads: 16, key_dim: 128}"),
      32000);
  EXPECT_EQ(model->parameter_count(), 1365677056);
  EXPECT_EQ(model->parameters().size(), 339u);
}

TEST(Model, NamesAreFlas) {
  std::set<std::string> want = {"model.embeddings.weight", "model.norm.weight", "lm_head.weight"};
  for (const char* layer : {"model.layers.0.", "model.layers.1."})
    for (const char* name :
         {"attn_norm.weight", "mlp_norm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
          "mlp.down_proj.weight", "attn.q_proj.weight", "attn.k_proj.weight", "attn.v_proj.weight",
          "attn.b_proj.weight", "attn.a_proj.weight", "attn.A_log", "attn.dt_bias",
          "attn.q_conv1d.weight", "attn.k_conv1d.weight", "attn.v_conv1d.weight",
          "attn.g_proj.weight", "attn.o_norm.weight", "attn.o_proj.weight"})
      want.insert(cat(layer, name));
  std::set<std::string> got;
  Model model(config_of(kSmall), 5, 1);
  for (const auto& item : model.named_parameters()) got.insert(item.key());
  EXPECT_EQ(got, want);
  for (const auto& name : got)
    EXPECT_EQ(model.decays(name), !name.ends_with("A_log") && !name.ends_with("dt_bias")) << name;

  const auto tied = Model::blank(config_of(cat(kSmall, "tied: true")), 5);
  EXPECT_EQ(tied->parameters().size(), got.size() - 1);
}

TEST(Model, HiddenUnitsFollowTheRoundingRule) {
  for (const auto& [width, hidden] : std::vector<std::pair<int64_t, int64_t>>{
           {128, 512}, {512, 1536}, {736, 2048}, {1024, 2816}, {1468, 4096}, {2560, 6912}}) {
    const auto model =
        Model::blank(config_of(cat("layers: 1\nmixer: {name: delta_net}\nwidth: ", width)), 3);
    EXPECT_EQ(model->named_parameters()["model.layers.0.mlp.down_proj.weight"].size(1), hidden);
  }
}

TEST(Model, WeightsAreAFunctionOfTheSeed) {
  const auto config = config_of(kSmall);
  const auto flat = [](const Model& model) {
    std::vector<Tensor> all;
    for (const auto& parameter : model.parameters()) all.push_back(parameter.detach().flatten());
    return torch::cat(all);
  };
  const Tensor want = flat(Model(config, 5, 7));
  torch::rand(3);  // what was drawn before does not matter
  EXPECT_TRUE(torch::equal(flat(Model(config, 5, 7)), want));
  EXPECT_FALSE(torch::equal(flat(Model(config, 5, 8)), want));
  torch::manual_seed(1);
  const Tensor drawn = flat(Model(config, 5));
  EXPECT_FALSE(torch::equal(flat(Model(config, 5)), drawn));
  torch::manual_seed(1);
  EXPECT_TRUE(torch::equal(flat(Model(config, 5)), drawn));
}

TEST(Model, InitialisationsDiffer) {
  const auto weights = [](const char* scheme) {
    Model model(config_of(cat("init: {scheme: ", scheme, "}\n", kParity)), 10, 3);
    std::map<std::string, Tensor> out;
    for (const auto& item : model.named_parameters()) out[item.key()] = item.value().detach();
    return out;
  };
  const std::string layer = "model.layers.1.", down = layer + "mlp.down_proj.weight";
  const auto deviation = [](const Tensor& w) { return w.std().item<double>(); };
  auto chomsky = weights("chomsky"), product = weights("deltaproduct"), fla = weights("fla");
  EXPECT_NEAR(deviation(chomsky[down]), 0.01, 1e-4);
  EXPECT_NEAR(deviation(fla[down]), 0.02, 2e-4);
  const double bound = 1 / std::sqrt(512.0) / 2;
  EXPECT_NEAR(deviation(product[down]), bound / std::sqrt(3.0), 1e-4);
  EXPECT_LE(product[down].abs().max().item<double>(), bound);
  for (auto* w : {&chomsky, &product, &fla}) {
    EXPECT_NEAR(deviation((*w)["lm_head.weight"]), 0.02, 1e-3);
    EXPECT_NEAR(deviation((*w)["model.embeddings.weight"]), 0.02, 1e-3);
    EXPECT_NEAR(deviation((*w)[layer + "mlp.up_proj.weight"]), 0.02, 2e-4);
    EXPECT_TRUE(torch::equal((*w)["model.norm.weight"], torch::ones(128)));
    EXPECT_FALSE(torch::equal((*w)[layer + "attn.q_proj.weight"],
                              (*w)["model.layers.0.attn.q_proj.weight"]));
  }
  EXPECT_TRUE(
      torch::equal(chomsky[layer + "attn.o_proj.weight"], product[layer + "attn.o_proj.weight"]));
  EXPECT_NEAR(deviation(fla[layer + "attn.o_proj.weight"]), 0.02, 2e-4);
}

TEST(Model, RefusesWhatItCannotBe) {
  const auto error_of = [](const std::string& yaml) {
    try {
      config_of(yaml);
      return std::string("no error");
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(error_of(kParity), "no error");
  EXPECT_EQ(error_of(cat(kParity, "\nwidth: 0")), "x.yaml:2: width must be at least 1, got 0");
  EXPECT_EQ(error_of(cat(kParity, "\nlayers: 0")), "x.yaml:2: layers must be at least 1, got 0");
  EXPECT_EQ(error_of(cat(kParity, "\nlayers: 1e9")),
            "x.yaml:2: layers must be at most 10000, got 1000000000");
  EXPECT_EQ(error_of(cat(kParity, "\nwidth: 2e9")),
            "x.yaml:2: width must be at most 1000000000, got 2000000000");
  EXPECT_EQ(error_of(cat(kParity, "\nmlp: {hidden: -1}")),
            "x.yaml:2: mlp.hidden must be at least 0, got -1");
  EXPECT_EQ(error_of("mixer: {name: delta_net, heads: 0}"),
            "x.yaml:1: mixer.heads must be at least 1, got 0");
  EXPECT_EQ(error_of("width: 8"), "x.yaml: mixer.name is needed");
  EXPECT_EQ(error_of(cat(kParity, "\nhybrid: {every: 2}")), "x.yaml: hybrid.mixer.name is needed");
  EXPECT_EQ(error_of(cat(kParity, "\nhybrid: {every: -1}")),
            "x.yaml:2: hybrid.every must be at least 0, got -1");
  EXPECT_EQ(error_of(cat(kParity, "\nblock: plain")),
            "x.yaml:2: block plain leaves no place for an mlp");

  Model model(config_of(kSmall), 5, 2);
  State state;
  EXPECT_THROW(model.forward(torch::zeros({3}, torch::kInt64), state), Error);
  EXPECT_THROW(model.forward(torch::zeros({1, 3}), state), Error);
  State wrong(3);
  EXPECT_THROW(model.forward(torch::zeros({1, 3}, torch::kInt64), wrong), Error);
}

}  // namespace
}  // namespace lrnn::model
