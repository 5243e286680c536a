#include "model/import.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.h"
#include "model/checkpoint.h"
#include "model/export.h"
#include "tests/model/configs.h"

namespace lrnn::model {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

int64_t parameters(const std::string& text) {
  const auto published = published_model(Json::parse(text), "x.json");
  return Model::shapes(published.config, published.vocabulary)->parameter_count();
}

// Of flame's configs, and of one that is published (fla-hub/delta_net-1.3B-100B).
TEST(Import, ParameterCountsOfPublishedModels) {
  EXPECT_EQ(parameters(R"({"model_type": "delta_net", "hidden_size": 1024, "num_heads": 8})"),
            374'362'112);
  EXPECT_EQ(parameters(R"({"model_type": "delta_net"})"), 1'365'677'056);
  EXPECT_EQ(parameters(R"({"model_type": "gated_deltanet", "hidden_size": 1024})"), 512'272'124);
  EXPECT_EQ(parameters(R"({"model_type": "transformer", "hidden_size": 1024, "num_heads": 16})"),
            373'867'520);
  EXPECT_EQ(parameters(R"({"model_type": "gla", "hidden_size": 1024})"), 374'475'776);
  EXPECT_EQ(parameters(R"({"model_type": "mamba", "hidden_size": 1024, "norm_eps": 1e-5,
                           "dt_rank": 128})"),
            398'148'608);
}

std::string error_of_config(const std::string& text) {
  try {
    published_model(Json::parse(text), "x.json");
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Import, RefusesAConfigThatIsWrong) {
  const auto of = [](const std::string& more, const std::string& type = "delta_net") {
    return error_of_config(R"({"model_type": ")" + type + R"(", )" + more + "}");
  };
  EXPECT_EQ(error_of_config("[]"), "x.json is not a JSON object");
  EXPECT_EQ(error_of_config("{}"), "x.json: there is no model_type");
  EXPECT_EQ(error_of_config(R"({"model_type": 3})"), "x.json: model_type must be a text, got 3");
  EXPECT_EQ(error_of_config(R"({"model_type": "gpt2"})"),
            "x.json: lrnn has no model of the type 'gpt2'");
  EXPECT_EQ(of(R"("hidden_size": "big")"),
            "x.json: hidden_size must be a whole number from 1 to 10000000, got \"big\"");
  EXPECT_EQ(of(R"("hidden_size": 1e300)"),
            "x.json: hidden_size must be a whole number from 1 to 10000000, got 1e+300");
  EXPECT_EQ(of(R"("hidden_size": 18446744073709551615)"),
            "x.json: hidden_size must be a whole number from 1 to 10000000, got "
            "18446744073709551615");
  EXPECT_EQ(of(R"("num_hidden_layers": 1000000000)"),
            "x.json: num_hidden_layers must be a whole number from 1 to 10000, got 1000000000");
  EXPECT_EQ(of(R"("num_heads": 0)"),
            "x.json: num_heads must be a whole number from 1 to 10000000, got 0");
  EXPECT_EQ(of(R"("num_heads": 7)"), "x.json: 2048 channels cannot be divided into 7 heads");
  EXPECT_EQ(of(R"("expand_k": 0.3)"),
            "x.json: expand_k times 2048 must be a whole number of channels, got 0.3");
  EXPECT_EQ(of(R"("expand_k": [1])"), "x.json: expand_k must be a number above 0, got [1]");
  EXPECT_EQ(of(R"("vocab_size": -1)"),
            "x.json: vocab_size must be a whole number from 1 to 100000000, got -1");
  EXPECT_EQ(of(R"("use_gate": "yes")"), "x.json: use_gate must be true or false, got \"yes\"");
  EXPECT_EQ(of(R"("norm_eps": -1)"), "x.json: norm_eps must be a number above 0, got -1");
  EXPECT_EQ(of(R"("attn": 7)"),
            "x.json: attn must be an object with a list of layers, or a list of such, got 7");
  EXPECT_EQ(of(R"("attn": {"layers": [1, 99], "num_heads": 2})"),
            "x.json: attn: layers must be different blocks of the model, got [1,99]");
  EXPECT_EQ(of(R"("attn": [{"layers": [1], "num_heads": 2}, {"layers": [2], "num_heads": 4}])"),
            "x.json: lrnn has one kind of attention in a model");
}

TEST(Import, RefusesWhatOurModelsLack) {
  const auto of = [](const std::string& type, const std::string& more) {
    return error_of_config(R"({"model_type": ")" + type + R"(", )" + more + "}");
  };
  const std::string no = "x.json: lrnn has no model with ";
  EXPECT_EQ(of("gla", R"("feature_map": "relu")"), no + "feature_map \"relu\"");
  EXPECT_EQ(of("gla", R"("num_kv_heads": 2)"), no + "num_kv_heads 2");
  EXPECT_EQ(of("gla", R"("attnres_block_size": 4)"), no + "attnres_block_size 4");
  EXPECT_EQ(of("transformer", R"("window_size": 512)"), no + "window_size 512");
  EXPECT_EQ(of("transformer", R"("qkv_bias": true)"), no + "qkv_bias true");
  EXPECT_EQ(of("llama", R"("attention_bias": true)"), no + "attention_bias true");
  EXPECT_EQ(of("llama", R"("hidden_act": "gelu")"), no + "hidden_act \"gelu\"");
  EXPECT_EQ(of("llama", R"("rope_scaling": {"rope_type": "llama3"})"),
            "x.json: rope_scaling: lrnn has no model with rope_type \"llama3\"");
  EXPECT_EQ(of("mamba", R"("use_bias": true)"), no + "use_bias true");
  EXPECT_EQ(of("rwkv7", R"("norm_bias": false)"), no + "norm_bias false");
  EXPECT_EQ(of("rwkv7", R"("value_dim": 4096)"), no + "value_dim 4096");
  EXPECT_EQ(of("delta_net", R"("qk_norm": "sum")"),
            "x.json: lrnn has no qk_norm sum with qk_activation silu");
}

// A small model in a folder of its own, to be spoilt.
class ImportFolder : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lrnn_import_XXXXXX";
    folder_ = ::mkdtemp(name);
    const Model model(config_of("width: 4\nlayers: 1\nmixer: {name: delta_net, heads: 1, key_dim: "
                                "4}\nmlp: {hidden: 3}"),
                      5, 1);
    export_model(folder_, model);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string error() const {
    try {
      import_model(folder_);
      return "no error";
    } catch (const Error& e) {
      std::string text = e.what();
      for (size_t at; (at = text.find(folder_)) != std::string::npos;)
        text.replace(at, folder_.size(), "F");
      return text;
    }
  }
  std::string hint() const {
    try {
      import_model(folder_);
      return "";
    } catch (const Error& e) {
      return e.hint();
    }
  }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  std::map<std::string, torch::Tensor> tensors() const {
    return read_safetensors(folder_ + "/model.safetensors").tensors;
  }
  void store(const std::map<std::string, torch::Tensor>& tensors,
             const std::string& name = "model.safetensors") const {
    write_checkpoint(folder_ + "/" + name, {tensors, {}});
  }
  // The weights as one shard, and an index with this for its file.
  void shard(const Json& index) const {
    fs::rename(folder_ + "/model.safetensors", folder_ + "/a.safetensors");
    write("model.safetensors.index.json", index.dump());
  }
  Json index(const std::string& file) const {
    Json map = Json::object();
    for (const auto& [name, tensor] : tensors()) map[name] = file;
    return {{"metadata", Json::object()}, {"weight_map", map}};
  }
  static std::string header(uint64_t size, const std::string& text) {
    std::string out(8, '\0');
    std::memcpy(out.data(), &size, 8);
    return out + text;
  }
  std::string folder_;
};

TEST_F(ImportFolder, IsRead) {
  EXPECT_TRUE(is_published(folder_));
  EXPECT_EQ(error(), "no error");
  const auto all = tensors();
  for (const auto& item : import_model(folder_).model->named_parameters())
    EXPECT_TRUE(torch::equal(item.value(), all.at(item.key()))) << item.key();
}

TEST_F(ImportFolder, ListsAllThatDoesNotFit) {
  auto all = tensors();
  all.erase("model.norm.weight");
  all["model.layers.0.attn.q_proj.weight"] = torch::zeros({3, 4});
  all["model.layers.7.attn.q_proj.weight"] = torch::zeros({3});
  all["model.layers.0.mlp.up_proj.weight"] = torch::zeros({3, 4}, torch::kFloat64);
  store(all);
  EXPECT_EQ(error(),
            "the weights in F do not fit its config.json:\n"
            "  model.layers.0.attn.q_proj.weight is [3, 4], the config says [4, 4]\n"
            "  model.layers.0.mlp.up_proj.weight has the dtype F64, which float32 cannot hold\n"
            "  model.norm.weight [4] is missing\n"
            "  model.layers.7.attn.q_proj.weight [3] is unexpected");
  auto config = Json::parse(read_file(folder_ + "/config.json"));
  config["num_hidden_layers"] = 10000;
  write("config.json", config.dump());
  EXPECT_NE(error().find("more"), std::string::npos);
  EXPECT_LT(error().size(), 10000u);
}

TEST_F(ImportFolder, RefusesAHeadThatIsNotTheEmbedding) {
  auto config = Json::parse(read_file(folder_ + "/config.json"));
  config["tie_word_embeddings"] = true;
  write("config.json", config.dump());
  EXPECT_EQ(error(),
            "F/config.json: tie_word_embeddings is true, and lm_head.weight is not the embedding");
  auto all = tensors();
  all["lm_head.weight"] = all["model.embeddings.weight"];
  store(all);
  EXPECT_TRUE(import_model(folder_).origin.stored_head);
  all.erase("lm_head.weight");
  store(all);
  EXPECT_FALSE(import_model(folder_).origin.stored_head);
}

TEST_F(ImportFolder, ReadsSeveralFiles) {
  shard(index("a.safetensors"));
  EXPECT_EQ(error(), "no error");
}

TEST_F(ImportFolder, RefusesAnIndexThatLeadsElsewhere) {
  for (const std::string name : {"../x.safetensors", "/etc/x.safetensors", "b/x.safetensors", "..",
                                 ".safetensors", "", "a.bin", "b\\x.safetensors"}) {
    auto all = index("a.safetensors");
    all["weight_map"]["model.norm.weight"] = name;
    write("model.safetensors.index.json", all.dump());
    if (fs::exists(folder_ + "/model.safetensors"))
      fs::rename(folder_ + "/model.safetensors", folder_ + "/kept");
    EXPECT_EQ(error(), "F/model.safetensors.index.json: '" + name +
                           "' is not the name of a .safetensors file beside it");
    fs::rename(folder_ + "/kept", folder_ + "/model.safetensors");
  }
}

TEST_F(ImportFolder, RefusesAnIndexThatLies) {
  auto missing = index("a.safetensors");
  missing["weight_map"]["model.norm.weight"] = "z.safetensors";
  auto more = index("a.safetensors");
  more["weight_map"]["more"] = "a.safetensors";
  auto fewer = index("a.safetensors");
  fewer["weight_map"].erase("model.norm.weight");
  auto number = index("a.safetensors");
  number["weight_map"]["model.norm.weight"] = 3;
  const std::string file = "F/model.safetensors.index.json";
  shard(fewer);
  EXPECT_EQ(error(), "F/a.safetensors has 'model.norm.weight', which the index does not know");
  const auto with = [&](const std::string& text) {
    write("model.safetensors.index.json", text);
    return error();
  };
  EXPECT_EQ(with(more.dump()), file + " says that 'more' is in a.safetensors, and it is not");
  EXPECT_EQ(with(number.dump()), file + ": the file of 'model.norm.weight' is not a text");
  EXPECT_EQ(with("{}"), file + " has no weight_map from tensors to files");
  EXPECT_EQ(with("{\"weight_map\": {\"a\": \"a\", \"a\": \"b\"}}"),
            file + " cannot be read: the key 'a' comes twice");
  const auto deep = with(std::string(100000, '[')).substr(0, 60);
  EXPECT_EQ(deep, (file + " cannot be read: it is nested too deeply").substr(0, 60));
  EXPECT_NE(with(missing.dump()).find("names z.safetensors, which is not there"),
            std::string::npos);
}

TEST_F(ImportFolder, RefusesPicklesWithTheLineThatConvertsThem) {
  fs::remove(folder_ + "/model.safetensors");
  EXPECT_EQ(error(), "F has neither model.safetensors nor model.safetensors.index.json");
  write("pytorch_model.bin", "pickle");
  EXPECT_EQ(error(), "the weights in F are pickles, which are programs; lrnn runs none");
  EXPECT_NE(hint().find("weights_only=True"), std::string::npos);
}

TEST_F(ImportFolder, RefusesFilesThatLie) {
  const std::string bad = "F/model.safetensors is damaged or not a safetensors file: ";
  const auto with = [&](const std::string& bytes) {
    write("model.safetensors", bytes);
    return error();
  };
  EXPECT_EQ(with(""), bad + "it is cut short");
  EXPECT_EQ(with(header(uint64_t{1} << 60, "{}")),
            bad + "its header would be 1152921504606846976 bytes long, but only 2 follow");
  // A gigabyte of header that takes no room on the disk.
  with(header(uint64_t{1} << 30, ""));
  fs::resize_file(folder_ + "/model.safetensors", (uint64_t{1} << 30) + 8);
  EXPECT_EQ(error(), bad +
                         "its header would be 1073741824 bytes long, and no model needs more "
                         "than 33554432");
  const auto tensor = [](const std::string& name, int begin, int end) {
    return cat("\"", name, R"(": {"dtype": "F32", "shape": [)", (end - begin) / 4,
               R"(], "data_offsets": [)", begin, ", ", end, "]}");
  };
  const auto of = [&](const std::string& text) {
    return with(header(text.size(), text) + std::string(8, 'x'));
  };
  EXPECT_EQ(of("{" + tensor("a", 0, 8) + ", " + tensor("b", 4, 8) + "}"),
            bad + "'b' overlaps the tensor before it");
  EXPECT_EQ(of("{" + tensor("a", 4, 8) + "}"), bad + "there is a hole before 'a'");
  EXPECT_EQ(of("{" + tensor("a", 0, 80) + "}"),
            bad + "'a' ends at byte 80 of 8 bytes of data: the file is cut short");
  EXPECT_EQ(
      of(R"({"a": {"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 8]}})"),
      bad + "'a' has an impossible shape");
}

TEST_F(ImportFolder, RefusesAModelLargerThanMemory) {
  // Ten terabytes in a file that takes no room on the disk.
  auto config = Json::parse(read_file(folder_ + "/config.json"));
  config["vocab_size"] = 100'000'000;
  config["hidden_size"] = 10'000;
  config["num_heads"] = 1, config["expand_k"] = config["expand_v"] = 1;
  write("config.json", config.dump());
  const auto shapes = [&] {
    const auto published = published_model(config, "x");
    return tensors_of(*Model::shapes(published.config, published.vocabulary));
  }();
  Json header_json = Json::object();
  uint64_t at = 0;
  for (const auto& [name, t] : shapes) {
    const uint64_t end = at + uint64_t(t.numel()) * 4;
    header_json[name] = {{"dtype", "F32"}, {"shape", t.sizes().vec()}, {"data_offsets", {at, end}}};
    at = end;
  }
  const std::string text = header_json.dump();
  write("model.safetensors", header(text.size(), text));
  std::error_code failed;
  fs::resize_file(folder_ + "/model.safetensors", 8 + text.size() + at, failed);
  if (failed) GTEST_SKIP() << "this disk has no such large files";
  EXPECT_NE(error().find("MB are free"), std::string::npos) << error();
}

}  // namespace
}  // namespace lrnn::model
