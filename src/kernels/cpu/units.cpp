#include "kernels/cpu/units.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

namespace lrnn::kernels {

// Longest first, so that threads which take the next unit when they are free end together.
std::vector<Unit> plan_units(int64_t S, int64_t heads, int64_t T, const int64_t* cu_seqlens) {
  std::vector<Unit> list;
  list.reserve(S * heads);
  for (int64_t s = 0; s < S; ++s)
    for (int64_t h = 0; h < heads; ++h)
      list.push_back(cu_seqlens ? Unit{s, h, 0, cu_seqlens[s], cu_seqlens[s + 1] - cu_seqlens[s]}
                                : Unit{s, h, s, 0, T});
  if (cu_seqlens)
    std::stable_sort(list.begin(), list.end(),
                     [](const Unit& a, const Unit& b) { return a.length > b.length; });
  return list;
}

void run_units(const std::vector<Unit>& units, double work, const Parallel& parallel,
               const std::function<void(const Unit&)>& body) {
  const auto one = [&](int64_t i) { body(units[i]); };
  // Waking a second thread takes some ten microseconds, a few hundred thousand multiply-adds.
  if (work < 3e5 || units.size() < 2)
    serial(int64_t(units.size()), one);
  else
    parallel(int64_t(units.size()), one);
}

void* thread_scratch(size_t bytes) {
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<void, Free> block;
  thread_local size_t size = 0;
  if (bytes > size) {
    block.reset();
    size = (bytes + 4095) / 4096 * 4096;
    block.reset(std::aligned_alloc(64, size));
    if (!block) {
      size = 0;
      throw std::bad_alloc();
    }
  }
  return block.get();
}

}  // namespace lrnn::kernels
