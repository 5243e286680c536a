#pragma once
#include <cstdint>
#include <functional>

namespace lrnn::kernels {

// How a kernel hands out independent pieces of work: calls body(i) for i in 0..n-1, in any order,
// perhaps at once. The ops pass LibTorch's thread pool; tests may pass a plain loop. The result
// never depends on which thread runs which piece, nor on their number.
struct Parallel {
  using Body = std::function<void(int64_t i)>;
  std::function<void(int64_t n, const Body& body)> run;
  int64_t threads = 1;  // that may work at once
  void operator()(int64_t n, const Body& body) const { run(n, body); }
};

// All on this thread.
extern const Parallel serial;

}  // namespace lrnn::kernels
