#include "model/export.h"

#include "base/atomic_file.h"
#include "model/checkpoint.h"
#include "model/names.h"
#include "model/safetensors.h"

namespace lrnn::model {
namespace {

using Json = nlohmann::ordered_json;

torch::Dtype dtype_of(const std::string& name, const Origin* origin, const std::string& dtype) {
  if (dtype == "bfloat16") return torch::kBFloat16;
  if (!dtype.empty() || !origin) return torch::kFloat32;
  const auto other = origin->others.find(name);
  return dtype_named(other == origin->others.end() ? origin->dtype : other->second);
}

const char* word_for(torch::Dtype dtype) {
  if (dtype == torch::kBFloat16) return "bfloat16";
  return dtype == torch::kFloat16 ? "float16" : "float32";
}

}  // namespace

void export_model(const std::string& folder, const Model& model, const Origin* origin,
                  const std::string& dtype) {
  Json config = export_config(model.config(), model.vocabulary(), origin);
  const auto names = names_of(config.at("model_type"), config);
  Checkpoint out;
  for (const auto& [ours, tensor] : tensors_of(model)) {
    const std::string name = names(ours);
    out.tensors.emplace(name, tensor.detach().to(dtype_of(name, origin, dtype)));
  }
  if (origin && origin->stored_head)
    out.tensors.emplace("lm_head.weight", out.tensors.at(names("model.embeddings.weight")).clone());
  // transformers 5 renamed the key; it reads both.
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] =
      word_for(dtype_of("", origin, dtype));
  write_checkpoint(folder + "/model.safetensors", out);
  write_atomically(folder + "/config.json", config.dump(2) + "\n");
}

}  // namespace lrnn::model
