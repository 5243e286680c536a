#include "cli/find.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "cli/output.h"

namespace lrnn::cli {

namespace fs = std::filesystem;

std::string configs_folder() {
  std::error_code ignored;
  const auto program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& folder :
       {program / "../share/lrnn/configs", program / "../configs", fs::path(LRNN_CONFIGS)})
    if (fs::exists(folder / "demo", ignored)) return fs::weakly_canonical(folder, ignored).string();
  throw Error("the configs were not found", "run lrnn from where it was built or installed");
}

std::string find_config(const std::string& name) {
  std::error_code ignored;
  const fs::path given(name);
  if (name.empty() || given.is_absolute() || fs::exists(given, ignored)) return name;
  const std::string prefix = "configs/";
  const auto shipped =
      fs::path(configs_folder()) / (name.starts_with(prefix) ? name.substr(prefix.size()) : name);
  return fs::is_regular_file(shipped, ignored) ? shipped.string() : name;
}

std::string find_run(const std::string& name) {
  std::error_code ignored;
  const fs::path given(name);
  if (name.empty() || fs::exists(given, ignored)) return name;
  const auto folder = given.has_parent_path() ? given.parent_path() : fs::path(".");
  const std::string prefix = given.filename().string() + "-seed";
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with(prefix))
      found.push_back((given.parent_path() / entry.path().filename()).string());
  if (found.size() < 2) return found.empty() ? name : found[0];
  std::sort(found.begin(), found.end());
  throw Error(cat("there is no run ", name, ", but several of its seeds"),
              cat("name one of them, such as ", found[0]));
}

experiments::Run open_run(const std::string& name) {
  auto run = experiments::open(find_run(name));
  warn_of_damage(run);
  return run;
}

void warn_of_damage(const experiments::Run& run) {
  for (const auto& sentence : run.damaged) warn(cat(sentence, "; using step ", run.step));
}

}  // namespace lrnn::cli
