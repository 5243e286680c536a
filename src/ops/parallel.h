#pragma once
#include <ATen/Parallel.h>

#include <atomic>

#include "kernels/dispatch.h"

namespace lrnn::ops {

// LibTorch's threads for our kernels. Each thread takes the next piece when it is free, so pieces
// of unequal size balance.
inline kernels::Parallel parallel() {
  const int64_t all = at::in_parallel_region() ? 1 : at::get_num_threads();
  if (all < 2) return kernels::serial;
  return {[all](int64_t n, const kernels::Parallel::Body& body) {
            const int64_t threads = std::min(n, all);
            if (threads < 2) return kernels::serial(n, body);
            std::atomic<int64_t> next{0};
            at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
              for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) body(i);
            });
          },
          all};
}

}  // namespace lrnn::ops
