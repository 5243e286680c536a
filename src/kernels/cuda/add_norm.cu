#include "kernels/cuda/add_norm.h"
#include "kernels/cuda/row_array.cuh"

// A row belongs to as many neighbouring threads as it has packs of eight values, at most a warp. A
// thread keeps its pack in registers between the two looks at a row.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostParts = 528;

struct Wide {  // whose rows lie on 16 bytes
  bool x, y, s, h, ds, dh, dx, dy;
};

// This thread's pack of its row.
struct Place {
  int64_t c;
  int n;
  __device__ __forceinline__ Place(int64_t D, int lanes)
      : c(int64_t(threadIdx.x % lanes) * kPack), n(c < D ? int(min(D - c, int64_t(kPack))) : 0) {}
};

template <class R>
__device__ __forceinline__ void load(Type type, const RowArray& x, int64_t row, const Place& at,
                                     bool wide, R (&out)[kPack]) {
  Pack<R> pack;
  pack.load(type, x.data, begin_of(x, row) + at.c, at.n, wide);
#pragma unroll
  for (int i = 0; i < kPack; ++i) out[i] = pack.get(type, i);
}

template <class R>
__global__ void __launch_bounds__(kThreads) add_norm(const AddNorm p, int lanes, Wide wide) {
  const int64_t row = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / lanes;
  const Place at(p.D, lanes);
  const bool mine = row < p.rows && at.n > 0;
  R s[kPack] = {}, squares = 0;
  if (mine) {
    load(p.x_type, p.x, row, at, wide.x, s);
    if (p.y.data) {
      R y[kPack];
      load(p.y_type, p.y, row, at, wide.y, y);
#pragma unroll
      for (int i = 0; i < kPack; ++i) s[i] += y[i];
      store_pack(p.x_type, p.s.data, row * p.s.stride + at.c, at.n, wide.s, s);
      if (p.x_type == Type::kBFloat16)  // the norm is that of what is stored
#pragma unroll
        for (int i = 0; i < kPack; ++i)
          s[i] = R(__uint_as_float(uint32_t(to_bf16(float(s[i]))) << 16));
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) squares += s[i] * s[i];
  }
  const R r = inverse_root(sum_of_lanes(squares, lanes) / R(p.D) + R(p.eps));
  if (!mine) return;
  const R* const weight = static_cast<const R*>(p.weight);
#pragma unroll
  for (int i = 0; i < kPack; ++i) s[i] *= r * (i < at.n ? weight[at.c + i] : R(0));
  store_pack(p.h_type, p.h.data, row * p.h.stride + at.c, at.n, wide.h, s);
}

// A block takes every gridDim.x-th group of rows; a thread always has the same columns, so that
// its share of dweight stays in registers until the end.
template <class R>
__global__ void __launch_bounds__(kThreads)
    gradients(const AddNorm p, const AddNormGradient g, int lanes, Wide wide) {
  __shared__ R sums[kThreads * kPack];
  const int at_once = kThreads / lanes, own = int(threadIdx.x) / lanes;
  const Place at(p.D, lanes);
  R dweight[kPack] = {}, w[kPack];
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    w[i] = i < at.n ? static_cast<const R*>(p.weight)[at.c + i] : R(0);
  for (int64_t first = int64_t(blockIdx.x) * at_once; first < p.rows;
       first += int64_t(gridDim.x) * at_once) {
    const int64_t row = first + own;
    const bool mine = row < p.rows && at.n > 0;
    R s[kPack] = {}, dh[kPack] = {}, dx[kPack] = {}, squares = 0, along = 0;
    if (mine) {
      load(p.x_type, p.s, row, at, wide.s, s);
      load(p.h_type, g.dh, row, at, wide.dh, dh);
      if (g.ds.data) load(p.x_type, g.ds, row, at, wide.ds, dx);
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i) squares += s[i] * s[i], along += s[i] * dh[i] * w[i];
    const R r = inverse_root(sum_of_lanes(squares, lanes) / R(p.D) + R(p.eps));
    const R back = sum_of_lanes(along, lanes) / R(p.D) * r * r;
    if (!mine) continue;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      dweight[i] += dh[i] * s[i] * r;
      dx[i] += r * (dh[i] * w[i] - s[i] * back);
    }
    store_pack(p.x_type, g.dx.data, row * g.dx.stride + at.c, at.n, wide.dx, dx);
    if (g.dy.data) store_pack(p.y_type, g.dy.data, row * g.dy.stride + at.c, at.n, wide.dy, dx);
  }
  if (!g.partial) return;
#pragma unroll
  for (int i = 0; i < kPack; ++i) sums[threadIdx.x * kPack + i] = dweight[i];
  __syncthreads();
  for (int c = int(threadIdx.x); c < p.D; c += kThreads) {
    R sum = 0;
    for (int k = 0; k < at_once; ++k) sum += sums[k * lanes * kPack + c];
    static_cast<R*>(g.partial)[int64_t(blockIdx.x) * p.D + c] = sum;
  }
}

// Calls f with a zero of the type that is computed in.
template <class F> void in_real(const AddNorm& p, F&& f) {
  check(p.D <= kAddNormMost, "[add_norm] rows have up to ", kAddNormMost, " values, got ", p.D);
  p.x_type == Type::kFloat64 ? f(double()) : f(float());
}

}  // namespace

void add_norm_forward(const AddNorm& p, void* stream) {
  if (p.rows == 0 || p.D == 0) return;
  const int lanes = lanes_of(p.D);
  const int64_t blocks = (p.rows * lanes + kThreads - 1) / kThreads;
  check(blocks < (int64_t(1) << 31), "[add_norm] too many rows for a grid");
  Wide wide{};
  wide.x = on_packs(p.x, p.x_type), wide.y = on_packs(p.y, p.y_type);
  wide.s = on_packs(p.s, p.x_type), wide.h = on_packs(p.h, p.h_type);
  in_real(p, [&](auto zero) {
    add_norm<decltype(zero)>
        <<<unsigned(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(p, lanes, wide);
  });
  check_launch("add_norm");
}

int64_t add_norm_parts(int64_t rows, int64_t D) {
  const int64_t at_once = kThreads / lanes_of(D), groups = (rows + at_once - 1) / at_once;
  return groups < kMostParts ? groups : kMostParts;
}

void add_norm_backward(const AddNorm& p, const AddNormGradient& g, void* stream) {
  if (p.rows == 0 || p.D == 0) return;
  const int lanes = lanes_of(p.D);
  const int64_t blocks = add_norm_parts(p.rows, p.D);
  Wide wide{};
  wide.s = on_packs(p.s, p.x_type), wide.ds = on_packs(g.ds, p.x_type);
  wide.dh = on_packs(g.dh, p.h_type), wide.dx = on_packs(g.dx, p.x_type);
  wide.dy = on_packs(g.dy, p.y_type);
  in_real(p, [&](auto zero) {
    gradients<decltype(zero)>
        <<<unsigned(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(p, g, lanes, wide);
  });
  check_launch("add_norm");
}

}  // namespace lrnn::kernels::cuda
