#include "ops/no_memory.h"

#include <ATen/ops/empty.h>
#include <torch/library.h>

// torch keeps the key DeferredInit for "modules whose weights come later". Every other factory is
// made of `empty`, so it alone has to be caught.
namespace lrnn::ops {
namespace {

at::Tensor empty_without_memory(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                                std::optional<at::Layout> layout, std::optional<at::Device>,
                                std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::impl::ExcludeDispatchKeyGuard once(c10::DispatchKey::DeferredInit);
  return at::empty_symint(size, dtype, layout, at::kMeta, std::nullopt, format);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, DeferredInit, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, DeferredInit, m) {
  m.impl("empty.memory_format", TORCH_FN(empty_without_memory));
}

}  // namespace lrnn::ops
