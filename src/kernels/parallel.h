#pragma once
#include <cstdint>
#include <functional>

namespace lrnn::kernels {

// How a kernel hands out independent pieces of work: calls body(i) for i in 0..n-1, in any order,
// perhaps at once. The ops pass LibTorch's thread pool; tests may pass a plain loop. The result
// never depends on which thread runs which piece.
using Parallel = std::function<void(int64_t n, const std::function<void(int64_t i)>& body)>;

inline void serial(int64_t n, const std::function<void(int64_t i)>& body) {
  for (int64_t i = 0; i < n; ++i) body(i);
}

}  // namespace lrnn::kernels
