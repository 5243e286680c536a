#include "ops/gpu.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/error.h"

namespace lrnn::ops {
namespace {

Gpu* loaded = nullptr;

// Wherever this very library was installed.
std::string plug_in() {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&plug_in), &here);
  const std::filesystem::path library = here.dli_fname ? here.dli_fname : "";
  return (library.parent_path() / "liblrnn_cuda.so").string();
}

}  // namespace

Gpu* gpu() { return loaded; }
void set_gpu(Gpu* gpu) { loaded = gpu; }

std::string load_gpu() {
  if (loaded) return "";
  const auto file = plug_in();
  if (!std::filesystem::exists(file))
    return "this build has no CUDA kernels (`make cuda` adds them)";
  if (dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) return "";
  const char* why = dlerror();
  return cat("the CUDA kernels cannot be loaded: ", why ? why : "no reason given");
}

}  // namespace lrnn::ops
