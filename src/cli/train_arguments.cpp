#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "cli/find.h"
#include "cli/train.h"
#include "experiments/folder.h"

// `lrnn train`: which config, which folder, new or going on, from what was typed.
namespace lrnn::cli {

namespace fs = std::filesystem;

namespace {

void check_flags(const TrainArguments& a) {
  if (a.resume && a.overwrite)
    throw Error("--resume goes on with a run and --overwrite removes it", "leave one of them out");
  // Several seeds may have been begun in part.
  if (a.resume && !a.from.empty() && a.seeds == 0)
    throw Error("--from begins a run and --resume continues one",
                "leave one of them out; a run that was begun with --from needs only --resume");
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// The run in that folder is trained further, or once more, with its own config.
void take_run(TrainArguments& a, std::string folder) {
  folder = without_slashes(folder);
  const auto name = shell_word(folder);
  if (fs::exists(folder + "/manifest.json"))
    throw Error(cat(folder, " is a checkpoint"),
                cat("give the run's folder, or begin a new run with --from ", name));
  if (!fs::exists(folder + "/config.yaml"))
    throw Error(cat(folder, fs::exists(folder) ? " is a folder without a run in it"
                                               : " does not exist, so there is no run in it"),
                "give a config such as configs/tiny.yaml, or the folder of a run with --resume");
  if (a.seeds > 0)
    throw Error(cat("--seeds trains a config, and ", folder, " is a run"),
                cat("give its config: ", shell_word(folder + "/config.yaml")));
  if (!a.resume && !a.overwrite)
    throw Error(
        cat(folder, " is a run already"),
        cat("lrnn train ", name, " --resume goes on with it, train.steps=N makes it longer; ",
            "--overwrite trains it once more"));
  if (!a.out.empty() && without_slashes(a.out) != folder)
    throw Error(cat("two run folders were given: ", folder, " and ", a.out),
                cat("leave --out away, or begin a new run with --from ", name));
  a.config = folder + "/config.yaml";
  a.out = folder;
}

}  // namespace

bool TrainArguments::extend() const {
  return std::any_of(overrides.begin(), overrides.end(), experiments::about_the_end);
}

TrainArguments settle(TrainArguments a) {
  check_flags(a);
  // Where the config may be left out, what stands in its place is a key=value pair.
  if (a.config.find('=') != std::string::npos && !fs::exists(a.config)) {
    a.overrides.insert(a.overrides.begin(), a.config);
    a.config.clear();
  }
  if (fs::is_directory(a.config) && a.from.empty()) {
    take_run(a, a.config);
  } else if (a.config.empty() && !a.from.empty()) {
    a.config = a.from + "/config.yaml";
    if (!fs::exists(a.config))
      throw Error(a.from + " is neither a run nor a checkpoint",
                  "give the folder that `lrnn train --out` or `lrnn compile -o` wrote");
  } else if (a.config.empty()) {
    const bool there = a.resume || a.overwrite || fs::exists(a.out + "/config.yaml");
    if (there && !a.out.empty() && a.seeds == 0) {
      take_run(a, a.out);
    } else if (a.resume && a.seeds == 0) {
      throw Error("which run? None was named", "`lrnn train RUN --resume`");
    } else {
      throw Error("no config was given", "`lrnn train configs/tiny.yaml`, or --from a run");
    }
  } else if (fs::is_directory(a.config)) {
    throw Error(cat(a.config, " is a folder and no config"),
                "with --from the config may be left out; otherwise name a file");
  }
  a.config = find_config(a.config);
  return a;
}

std::string default_folder(const TrainArguments& a, int64_t seed) {
  if (!a.from.empty())
    return fmt::format("runs/{}-tuned-seed{}", fs::weakly_canonical(a.from).filename().string(),
                       seed);
  return fmt::format("runs/{}-seed{}", fs::path(a.config).stem().string(), seed);
}

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string("_-./=:,+@%").find(c) != std::string::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace lrnn::cli
