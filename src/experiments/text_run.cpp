#include "experiments/text_run.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"

namespace lrnn::experiments {

namespace fs = std::filesystem;

TextRun text_run(const std::string& folder) {
  // A checkpoint lies in RUN/checkpoints.
  fs::path run = folder;
  if (!fs::exists(run / "tokenizer") && fs::exists(run / "model.safetensors"))
    run = fs::weakly_canonical(run).parent_path().parent_path();
  TextRun out{.tokenizer = (run / "tokenizer").string(), .bos = {}, .eos = {}};
  if (!fs::is_directory(out.tokenizer))
    throw Error(cat(folder, " is no language model: it has no tokenizer"),
                "train one with the task text, such as configs/lm/plays.yaml");
  const auto info = (run / "info.json").string();
  if (!fs::exists(info)) return out;
  const auto json = nlohmann::json::parse(read_file(info), nullptr, false);
  check(json.is_object(), info, " is damaged");
  const auto data = json.value("data", nlohmann::json::object());
  const auto id = [&](const char* key) -> std::optional<int32_t> {
    if (!data.contains(key) || !data[key].is_number_integer()) return {};
    return data[key].get<int32_t>();
  };
  out.bos = id("bos"), out.eos = id("eos");
  return out;
}

}  // namespace lrnn::experiments
