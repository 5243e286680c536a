#include "model/export.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/atomic_file.h"
#include "model/checkpoint.h"

namespace lrnn::model {
namespace {

using Json = nlohmann::ordered_json;

ModelConfig with_mixer(const std::string& mixer, const std::string& more = "") {
  return load<ModelConfig>(
      Section::from_text("mixer: {name: delta_product" + mixer + "}\n" + more));
}

std::string type_of(const ModelConfig& config) {
  try {
    return export_config(config, 7).at("model_type");
  } catch (const Error& e) {
    return e.what();
  }
}
std::string type_of(const std::string& mixer, const std::string& more = "") {
  return type_of(with_mixer(mixer, more));
}

TEST(Export, ChoosesTheTypeThatSaysTheSame) {
  EXPECT_EQ(type_of(""), "delta_net");
  EXPECT_EQ(type_of(", conv: 0, qk_activation: none"), "delta_net");
  EXPECT_EQ(type_of(", conv: 0"), "delta_net");
  EXPECT_EQ(type_of(", conv: 0, beta: false, qk_norm: sum, qk_activation: relu"), "delta_net");
  EXPECT_EQ(type_of(", beta: false, qk_norm: sum, qk_activation: elu"), "delta_net");
  EXPECT_EQ(type_of(", forget_gate: true"), "gated_deltanet");
  EXPECT_EQ(type_of(", forget_gate: true, householders: 2"), "gated_deltaproduct");
  EXPECT_EQ(type_of(", householders: 3"), "gated_deltaproduct");
}

TEST(Export, SaysWhatFlaLacks) {
  const std::string no = "fla has no model like this one: ";
  EXPECT_EQ(type_of("", "mlp: {name: none}"), no + "mlp none");
  EXPECT_EQ(type_of(", v_activation: none"), no + "v_activation none");
  EXPECT_EQ(type_of("", "mlp: {name: geglu}"), no + "mlp geglu");
  EXPECT_EQ(type_of("", "norm: layer"), no + "norm layer");
  EXPECT_EQ(type_of("", "final_norm: false"), no + "final_norm false");
  EXPECT_EQ(type_of("", "block: plain\nmlp: {name: none}"), no + "block plain");
  EXPECT_EQ(type_of(", qk_norm: none"), no + "qk_norm none");
  EXPECT_EQ(type_of(", qk_norm: sum"), no + "qk_norm sum with qk_activation silu");
  EXPECT_EQ(type_of(", initial_state: true"), no + "initial_state true");
  EXPECT_EQ(type_of("", "norm_eps: 0.001"), no + "a norm_eps of the mixer other than the model's");
  EXPECT_EQ(type_of(", householders: 2, qk_activation: none").rfind(no + "qk_activation none", 0),
            0u);
  EXPECT_EQ(type_of(", forget_gate: true, beta: false").rfind(no + "beta false", 0), 0u);
}

// Of every other mixer, and of what fla says in other words. Nobody is told that fla lacks a model
// it has.
TEST(Export, SaysWhatIsNotExportedYet) {
  for (const auto& entry : mixers::all()) {
    const std::string name = entry.name;
    if (name == "delta_product" || name == "delta_net") continue;
    const bool in_fla = name == "attention" || name == "gla" || name == "mamba" || name == "rwkv7";
    EXPECT_EQ(type_of(load<ModelConfig>(Section::from_text("mixer: {name: " + name + "}"))),
              in_fla ? "lrnn does not export the mixer " + name + " yet"
                     : "fla has no model like this one: the mixer " + name);
  }
  EXPECT_EQ(type_of("", "hybrid: {every: 2, mixer: {name: attention}}"),
            "lrnn does not export hybrid blocks yet");
  EXPECT_EQ(type_of("", "dtype: float64"), "lrnn does not export dtype float64 yet");
}

// fla's sizes, computed from the config as fla does, are those of our tensors.
TEST(Export, SizesAreThoseOfTheTensors) {
  for (int64_t key = 1; key <= 40; ++key)
    for (const int64_t width : {6, 100, 128}) {
      const auto config = with_mixer(cat(", heads: 3, key_dim: ", key, ", value_dim: ", key + 1),
                                     cat("width: ", width));
      const Json json = export_config(config, 7);
      EXPECT_EQ(int64_t(double(width) * json["expand_k"].get<double>()), 3 * key);
      EXPECT_EQ(int64_t(double(width) * json["expand_v"].get<double>()), 3 * (key + 1));
      const Json product = export_config(
          with_mixer(cat(", householders: 2, key_dim: ", key, ", value_dim: ", key + 1)), 7);
      EXPECT_EQ(int64_t(double(key) * product["expand_v"].get<double>()), key + 1);
    }
}

TEST(Export, WritesAFolder) {
  char name[] = "/tmp/lrnn_fla_XXXXXX";
  const std::string folder = ::mkdtemp(name);
  const auto config = with_mixer(", householders: 2, output_gate: true", "layers: 1\nwidth: 16");
  const Model model(config, 5, 3);
  export_model(folder, model);
  const Json json = Json::parse(read_file(folder + "/config.json"));
  EXPECT_EQ(json["hidden_size"], 16);
  EXPECT_EQ(json["num_householder"], 2);
  EXPECT_EQ(json["use_output_gate"], true);
  EXPECT_EQ(json["allow_neg_eigval"], true);
  EXPECT_EQ(json["intermediate_size"], 256);
  EXPECT_EQ(json["vocab_size"], 5);
  const auto again = Model::blank(config, 5);
  load_into(*again, read_checkpoint(folder + "/model.safetensors").tensors, folder);
  for (const auto& item : model.named_parameters())
    EXPECT_TRUE(torch::equal(again->named_parameters()[item.key()], item.value())) << item.key();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lrnn::model
