#include "cli/configs_folder.h"

#include <filesystem>

#include "base/error.h"

namespace lrnn::cli {

std::string configs_folder() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const auto& folder :
       {program / "../share/lrnn/configs", program / "../configs", fs::path(LRNN_CONFIGS)})
    if (fs::exists(folder / "demo", ignored)) return fs::weakly_canonical(folder, ignored).string();
  throw Error("the configs were not found", "run lrnn from where it was built or installed");
}

}  // namespace lrnn::cli
