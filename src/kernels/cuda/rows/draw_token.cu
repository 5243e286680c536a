#include <cfloat>

#include "kernels/cuda/rows/draw_token.h"
#include "kernels/cuda/tile/common.cuh"

// A block has a row. Nothing is sorted: where the tokens stand in order of their logits, the one
// behind a given amount (of tokens, or of probability) is found by histograms over ever smaller
// ranges of logits, and among equals by counting. Probabilities are whole numbers of 2^-shift, so
// that their sums are the same in any order: the result does not depend on who comes first.
namespace lrnn::kernels::cuda {
namespace {

using Amount = unsigned long long;

constexpr int kThreads = 1024, kWarps = kThreads / 32, kBins = 2 * kThreads;
constexpr unsigned kAll = 0xffffffffu;

struct Range {
  float lo, hi;
  static __device__ __forceinline__ Range empty() { return {FLT_MAX, -FLT_MAX}; }
  __device__ __forceinline__ void join(const Range& r) {
    lo = fminf(lo, r.lo), hi = fmaxf(hi, r.hi);
  }
  __device__ __forceinline__ void take(float x) { join({x, x}); }
  __device__ __forceinline__ bool has(float x) const { return lo <= x && x <= hi; }
};

struct Shared {
  Amount bins[kBins], sums[kWarps], before;
  Range ranges[kWarps];
  int found;
};

__device__ Range common_range(Range mine, Shared& shared) {
  for (int d = 16; d > 0; d /= 2)
    mine.join({__shfl_xor_sync(kAll, mine.lo, d), __shfl_xor_sync(kAll, mine.hi, d)});
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared.ranges[threadIdx.x / 32] = mine;
  __syncthreads();
  Range all = Range::empty();
  for (int w = 0; w < kWarps; ++w) all.join(shared.ranges[w]);
  return all;
}

// What the threads before this one have together; `total` is that of all.
__device__ Amount before_me(Amount mine, Amount& total, Shared& shared) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Amount sum = mine;
  for (int d = 1; d < 32; d *= 2) {
    const Amount other = __shfl_up_sync(kAll, sum, d);
    if (lane >= d) sum += other;
  }
  __syncthreads();
  if (lane == 31) shared.sums[warp] = sum;
  __syncthreads();
  Amount out = sum - mine;
  total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) out += total;
    total += shared.sums[w];
  }
  return out;
}

// All that stand before or at this place: larger logits, and of equals lower ids.
struct Limit {
  float value = -FLT_MAX;
  int id = INT32_MAX;
  __device__ __forceinline__ bool has(float x, int i) const {
    return x > value || (x == value && i <= id);
  }
};

struct Row {
  Type type;
  const void* data;
  int V;

  // Finite, whatever it was.
  __device__ __forceinline__ float operator[](int i) const {
    return fminf(fmaxf(load_as<float>(type, data, i), -FLT_MAX), FLT_MAX);
  }
  // Calls f(i, x) for this thread's tokens; all threads of a warp come along, those without a token
  // with i = V.
  template <class F> __device__ __forceinline__ void each(F&& f) const {
    constexpr int kAhead = 4;
    for (int first = threadIdx.x; first - int(threadIdx.x) < V; first += kAhead * kThreads) {
      float x[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) x[u] = (*this)[min(first + u * kThreads, V - 1)];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) f(min(first + u * kThreads, V), x[u]);
    }
  }
};

struct One {
  __device__ __forceinline__ Amount operator()(float) const { return 1; }
};
struct Weight {
  double largest, temperature, unit;
  __device__ __forceinline__ Amount operator()(float x) const {
    return __double2ull_rn(exp((double(x) - largest) / temperature) * unit);
  }
};

// In which part of the range x lies; the largest come first. Rising nowhere, and different for the
// two ends.
__device__ __forceinline__ int bin_of(float x, const Range& range, double scale) {
  return min(kBins - 1, int((double(range.hi) - double(x)) * scale));
}

// Adds to the bins; bin < 0 adds nothing. Mostly neighbours have different bins; where a whole warp
// has the same, it would queue up.
__device__ __forceinline__ void add_to(Amount* bins, int bin, Amount amount) {
  const int first = __shfl_sync(kAll, bin, 0);
  if (__all_sync(kAll, bin == first)) {
    if (first < 0) return;
    for (int d = 16; d > 0; d /= 2) amount += __shfl_xor_sync(kAll, amount, d);
    if (threadIdx.x % 32 == 0) atomicAdd(bins + first, amount);
  } else if (bin >= 0 && amount > 0) {
    atomicAdd(bins + bin, amount);
  }
}

struct Found {
  Limit at;
  Amount passed;  // by all up to it
};

// The first token with which more than wanted(the amount of all) has passed. Less than all must be
// wanted.
template <class Of, class Wanted>
__device__ Found find(const Row& row, const Limit& limit, Of&& amount, Wanted&& wanted,
                      Shared& shared) {
  Range range = Range::empty();
  row.each([&](int i, float x) {
    if (i < row.V && limit.has(x, i)) range.take(x);
  });
  range = common_range(range, shared);
  Amount passed = 0, target = 0, total = 0;
  bool known = false;
  while (range.lo < range.hi) {
    const double scale = kBins / (double(range.hi) - double(range.lo));
    for (int b = threadIdx.x; b < kBins; b += kThreads) shared.bins[b] = 0;
    __syncthreads();
    row.each([&](int i, float x) {
      const bool counts = i < row.V && range.has(x) && limit.has(x, i);
      add_to(shared.bins, counts ? bin_of(x, range, scale) : -1, counts ? amount(x) : 0);
    });
    __syncthreads();
    const Amount a = shared.bins[2 * threadIdx.x], b = shared.bins[2 * threadIdx.x + 1];
    const Amount start = passed + before_me(a + b, total, shared);
    if (!known) target = wanted(total), known = true;
    if (start <= target && target < start + a + b) {
      const bool second = target >= start + a;
      shared.found = 2 * threadIdx.x + second, shared.before = start + (second ? a : 0);
    }
    __syncthreads();
    const int found = shared.found;
    passed = shared.before;
    Range inside = Range::empty();
    row.each([&](int i, float x) {
      if (i < row.V && range.has(x) && limit.has(x, i) && bin_of(x, range, scale) == found)
        inside.take(x);
    });
    range = common_range(inside, shared);
  }
  // They are all equal: by their ids, of which each thread has a run.
  const float value = range.hi;
  const int run = (row.V + kThreads - 1) / kThreads, first = min(int(threadIdx.x) * run, row.V),
            last = min(first + run, row.V);
  const auto counts = [&](int i) { return row[i] == value && limit.has(value, i); };
  Amount mine = 0;
  for (int i = first; i < last; ++i) mine += counts(i);
  const Amount before = before_me(mine, total, shared), each = max(amount(value), Amount(1));
  if (!known) target = wanted(total * each);
  const Amount nth = min((target - passed) / each, total - 1);
  if (before <= nth && nth < before + mine) {
    Amount left = nth - before;
    int i = first;
    for (; i < last; ++i)
      if (counts(i) && left-- == 0) break;
    shared.found = i;
  }
  __syncthreads();
  return {{value, shared.found}, passed + (nth + 1) * each};
}

__global__ void __launch_bounds__(kThreads) draw(const DrawTokens p, int64_t* ids, double unit) {
  __shared__ Shared shared;
  const int64_t r = blockIdx.x;
  const int bytes = p.type == Type::kBFloat16 ? 2 : 4;
  const Row row{p.type, static_cast<const char*>(p.logits) + r * p.stride * bytes, int(p.V)};
  Limit limit;
  const int64_t k = p.temperature == 0 ? 1 : p.top_k;
  if (k > 0 && k < p.V)
    limit = find(
                row, limit, One(), [&](Amount) { return Amount(k - 1); }, shared)
                .at;
  if (k != 1) {
    Range range = Range::empty();
    row.each([&](int, float x) { range.take(x); });
    const Weight weight{common_range(range, shared).hi, p.temperature, unit};
    const auto at_most = [](double x, Amount all) { return min(Amount(x), all - 1); };
    Amount mass = 0;
    if (p.top_p < 1) {
      const auto found = find(
          row, limit, weight,
          [&](Amount all) {
            const Amount share(ceil(p.top_p * double(all)));  // doubles end before its last digit
            return share > 0 ? min(share, all) - 1 : 0;
          },
          shared);
      limit = found.at, mass = found.passed;
    }
    limit = find(
                row, limit, weight,
                [&](Amount all) {
                  const Amount of = p.top_p < 1 ? mass : all;
                  return at_most(p.u[r] * double(of), of);
                },
                shared)
                .at;
  }
  if (threadIdx.x == 0) ids[r] = p.V == 1 ? 0 : limit.id;
}

}  // namespace

void draw_tokens(const DrawTokens& p, int64_t* ids, void* stream) {
  if (p.rows == 0) return;
  int shift = 52;  // all of a row together stay below 2^62
  while ((p.V >> (62 - shift)) > 0) --shift;
  draw<<<unsigned(p.rows), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      p, ids, double(int64_t(1) << shift));
  check_launch("draw_token");
}

}  // namespace lrnn::kernels::cuda
