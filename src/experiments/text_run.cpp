#include "experiments/text_run.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "experiments/imported.h"
#include "tasks/text_data.h"

namespace lrnn::experiments {

namespace fs = std::filesystem;

namespace {

std::optional<int32_t> id_in(const nlohmann::ordered_json& object, const char* key) {
  if (!object.contains(key) || !object[key].is_number_unsigned()) return {};
  const auto id = object[key].get<uint64_t>();
  return id <= INT32_MAX ? std::optional<int32_t>(int32_t(id)) : std::nullopt;
}

}  // namespace

void TextRun::or_else(std::optional<int32_t> first, std::optional<int32_t> last) {
  if (trained) return;
  if (!bos) bos = first;
  if (!eos) eos = last;
}

TextRun text_run(const std::string& folder) {
  if (model::is_published(folder)) {  // its tokenizer lies beside the weights
    const auto config =
        nlohmann::ordered_json::parse(read_file(folder + "/config.json"), nullptr, false);
    return {folder, id_in(config, "bos_token_id"), id_in(config, "eos_token_id"), false,
            id_in(config, "max_position_embeddings")};
  }
  // A checkpoint lies in RUN/checkpoints.
  const fs::path run = run_around(folder);
  TextRun out;
  out.tokenizer = (run / "tokenizer").string();
  if (!fs::is_directory(out.tokenizer))
    throw Error(cat(folder, " is no language model: it has no tokenizer"),
                "train one with the task text, such as configs/lm/plays.yaml");
  if (const auto origin = origin_of(run.string()))
    return {out.tokenizer, id_in(origin->config, "bos_token_id"),
            id_in(origin->config, "eos_token_id"), false,
            id_in(origin->config, "max_position_embeddings")};
  const auto info = (run / "info.json").string();
  if (!fs::exists(info)) return out;
  const auto json = nlohmann::ordered_json::parse(read_file(info), nullptr, false);
  check(json.is_object(), info, " is damaged");
  out.trained = json.contains("data");
  if (!out.trained) return out;
  out.bos = id_in(json["data"], "bos"), out.eos = id_in(json["data"], "eos");
  return out;
}

std::vector<std::string> data_folders(const RunConfig& config) {
  std::vector<std::string> out;
  const auto task = resolve(config)["task"];
  tasks::TextData data;
  if (task["name"].Scalar() == "text" && task["data"] && tasks::parse(task["data"], data))
    for (const auto& source : data.sources) out.push_back(source.path);
  return out;
}

}  // namespace lrnn::experiments
