#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "experiments/folder.h"

namespace lrnn::experiments {

namespace fs = std::filesystem;

namespace {

// All that lrnn writes into the folder of a run.
constexpr std::array kRunFolders = {"checkpoints",
                                    "checkpoints/step-[0-9]*",
                                    "checkpoints/.unfinished-step-*",
                                    "checkpoints/.removed-step-*",
                                    "eval",
                                    "figures",
                                    "tensorboard",
                                    "tokenizer"};
constexpr std::array kRunFiles = {"config.yaml",
                                  "info.json",
                                  "metrics.jsonl",
                                  "timing.jsonl",
                                  "result.json",
                                  "lock",
                                  "train.log",
                                  "checkpoints/*step-*/config.yaml",
                                  "checkpoints/*step-*/manifest.json",
                                  "checkpoints/*step-*/model.safetensors",
                                  "checkpoints/*step-*/optimizer.safetensors",
                                  "checkpoints/*step-*/state.json",
                                  "eval/*.csv",
                                  "eval/*.json",
                                  "eval/*.md",
                                  "figures/*.svg",
                                  "figures/*.csv",
                                  "tensorboard/events.out.tfevents.*",
                                  "tokenizer/*.json",
                                  "tokenizer/*.model*",
                                  "tokenizer/*.tiktoken"};
constexpr std::array kRunLinks = {"checkpoints/best", "checkpoints/.unfinished-best"};

template <class Patterns> bool any_matches(const Patterns& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const char* pattern) {
    return ::fnmatch(pattern, name.c_str(), FNM_PATHNAME) == 0;
  });
}

bool ours(const fs::directory_entry& entry, std::string name) {
  if (entry.is_symlink()) return any_matches(kRunLinks, name);
  if (entry.is_directory()) return any_matches(kRunFolders, name);
  const std::string partial = ".partial";  // of a write that was cut short
  if (name.ends_with(partial)) name.resize(name.size() - partial.size());
  return entry.is_regular_file() && any_matches(kRunFiles, name);
}

}  // namespace

void check_removable(const std::string& folder, const std::string& needed) {
  if (!fs::exists(folder)) return;
  if (!needed.empty())
    if (const auto way = fs::relative(fs::weakly_canonical(needed), fs::weakly_canonical(folder));
        !way.empty() && *way.begin() != "..")
      throw Error(cat("--overwrite would remove ", needed, ", which the run begins with"),
                  "choose another folder with --out");
  const std::string choose = "choose another folder with --out";
  if (fs::exists(folder + "/compiled.json"))
    throw Error(cat(folder, " is a compiled model, which --overwrite leaves alone"),
                "remove it yourself, or " + choose);
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (const auto name =
            fs::relative(entry.path().parent_path(), folder) / entry.path().filename();
        !ours(entry, name.lexically_normal().string()))
      throw Error(cat(folder, " holds something that is not part of a run: ",
                      name.lexically_normal().string()),
                  "--overwrite removes runs and nothing else; move it away, or " + choose);
  // A run locks its folder before it writes its config.
  if (fs::exists(folder + "/config.yaml") && !fs::exists(folder + "/lock"))
    throw Error(cat(folder, "/config.yaml was not written by a run"),
                "--overwrite removes runs and nothing else; move it away, or " + choose);
}

void remove_run(const std::string& folder) {
  check_removable(folder);
  // config.yaml goes last: whoever is killed half-way can come back and go on.
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (const auto name = entry.path().filename(); name != "lock" && name != "config.yaml")
      paths.push_back(entry.path());
  paths.push_back(fs::path(folder) / "config.yaml");
  for (const auto& path : paths) {
    std::error_code failed;
    fs::remove_all(path, failed);
    check(!failed, "cannot remove ", path.string(), ": ", failed.message());
  }
}

}  // namespace lrnn::experiments
