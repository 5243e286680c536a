#include "kernels/delta_product.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/cpu/delta_product_units.h"
#include "kernels/isa.h"

namespace lrnn::kernels {
namespace {

const DeltaProductUnits& units() {
#if defined(__x86_64__)
  const Isa isa = best_isa();
  if (isa == Isa::kAvx512) return kDeltaProductAvx512;
  if (isa == Isa::kAvx2) return kDeltaProductAvx2;
#endif
  return kDeltaProductBaseline;
}

// Longest first, so that threads which take the next unit when they are free end together.
std::vector<Unit> plan(const DeltaProductInputs& p) {
  std::vector<Unit> list;
  list.reserve(p.S * p.H);
  for (int64_t s = 0; s < p.S; ++s)
    for (int64_t h = 0; h < p.H; ++h)
      list.push_back(p.cu_seqlens
                         ? Unit{s, h, 0, p.cu_seqlens[s], p.cu_seqlens[s + 1] - p.cu_seqlens[s]}
                         : Unit{s, h, s, 0, p.T});
  if (p.cu_seqlens)
    std::stable_sort(list.begin(), list.end(),
                     [](const Unit& a, const Unit& b) { return a.length > b.length; });
  return list;
}

template <class Problem, class Function>
void run(const Problem& p, Function* unit, const Parallel& parallel) {
  const std::vector<Unit> list = plan(p);
  // Waking a second thread takes some ten microseconds, a few hundred thousand multiply-adds.
  const double work = 3.0 * double(p.B * p.T * p.N * p.H) * double(p.K * p.V + 256);
  const auto body = [&](int64_t i) { unit(p, list[i]); };
  if (work < 3e5 || list.size() < 2)
    serial(int64_t(list.size()), body);
  else
    parallel(int64_t(list.size()), body);
}

}  // namespace

int64_t delta_product_segment(int64_t N) { return chunk_tokens(N) * kChunksPerSegment; }

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

void delta_product_forward(const DeltaProductForward& p, const Parallel& parallel) {
  run(p, units().forward[int(p.type)], parallel);
}

void delta_product_backward(const DeltaProductBackward& p, const Parallel& parallel) {
  run(p, units().backward[int(p.type)], parallel);
}

}  // namespace lrnn::kernels
