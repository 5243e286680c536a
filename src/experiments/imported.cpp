#include "experiments/imported.h"

#include <filesystem>

#include "base/atomic_file.h"

namespace lrnn::experiments {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string imported_file(const std::string& folder) { return folder + "/imported.json"; }

constexpr const char* kCompanions[] = {
    "tokenizer.json",     "tokenizer.model",         "tokenizer_config.json", "vocab.json",
    "merges.txt",         "special_tokens_map.json", "added_tokens.json",     "chat_template.jinja",
    "chat_template.json", "generation_config.json"};

}  // namespace

Run run_of(const std::string& folder, const model::Imported& imported) {
  Run run;
  run.folder = folder;
  run.model = imported.model;
  run.config.model = imported.model->config();
  run.config.task = Section::from_text(
      cat("{name: tokens, vocabulary: ", imported.model->vocabulary(), "}"), "task");
  run.task = tasks::make(run.config.task);
  return run;
}

void write_imported(const std::string& folder, const std::string& from,
                    const model::Imported& imported) {
  if (fs::exists(folder + "/config.yaml"))
    throw Error(cat(folder, " already holds a run"), "choose another folder with -o");
  const Run run = run_of(folder, imported);
  write_start(folder, run.config, *run.model, *run.task, false, /*moments=*/false);
  const auto& origin = imported.origin;
  const Json about{{"config", origin.config},
                   {"dtype", origin.dtype},
                   {"others", origin.others},
                   {"stored_head", origin.stored_head}};
  write_atomically(imported_file(folder), about.dump(2) + "\n");
  copy_companions(from, folder + "/tokenizer");
}

std::optional<model::Origin> origin_of(const std::string& folder) {
  const std::string file = imported_file(folder);
  if (!fs::exists(file)) return {};
  try {
    const auto about = Json::parse(read_file(file));
    model::Origin out;
    out.config = about.at("config");
    out.dtype = about.at("dtype").get<std::string>();
    out.others = about.at("others").get<std::map<std::string, std::string>>();
    out.stored_head = about.at("stored_head").get<bool>();
    return out;
  } catch (const Json::exception& e) {
    throw Error(cat(file, " is not what `lrnn import` writes: ", e.what()));
  }
}

std::vector<std::string> copy_companions(const std::string& from, const std::string& to) {
  std::vector<std::string> copied;
  for (const char* name : kCompanions) {
    const std::string path = cat(from, "/", name);
    if (!fs::is_regular_file(path)) continue;
    std::error_code failed;
    fs::create_directories(to, failed);
    check(!failed, "cannot make the folder ", to, ": ", failed.message());
    fs::copy_file(path, cat(to, "/", name), fs::copy_options::overwrite_existing, failed);
    check(!failed, "cannot copy ", path, " to ", to, ": ", failed.message());
    copied.emplace_back(name);
  }
  return copied;
}

}  // namespace lrnn::experiments
