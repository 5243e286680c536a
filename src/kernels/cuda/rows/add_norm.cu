#include "kernels/cuda/rows/add_norm.h"
#include "kernels/cuda/rows/row_array.cuh"

// A row belongs to as many neighbouring threads as it has packs of eight values, at most a warp. A
// thread keeps its pack in registers between the two looks at a row. Where rows are full packs on
// 16 bytes, in types the models have, the compiler knows it: a load behind a branch waits for the
// one before.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostParts = 528;

struct Wide {  // whose rows lie on 16 bytes
  bool x = true, y = true, s = true, h = true, ds = true, dh = true, dx = true, dy = true;
};

// What is known when compiling, or nothing.
struct Anything {
  using Real = float;
  Type x, y, h;
  int lanes;
  Wide wide;
  static constexpr bool kFull = false;
};
struct AnythingDouble : Anything {
  using Real = double;
};
template <Type kX, Type kY, Type kH, int kLanes> struct Known {
  using Real = float;
  static constexpr Type x = kX, y = kY, h = kH;
  static constexpr int lanes = kLanes;
  static constexpr Wide wide{};
  static constexpr bool kFull = true;  // packs
};

// This thread's pack of its row.
struct Place {
  int64_t c;
  int n;
  template <class How>
  __device__ __forceinline__ Place(int64_t D, const How& how)
      : c(int64_t(threadIdx.x % how.lanes) * kPack),
        n(How::kFull ? kPack
          : c < D    ? int(min(D - c, int64_t(kPack)))
                     : 0) {}
};

template <class R>
__device__ __forceinline__ void load(Type type, const RowArray& x, int64_t row, const Place& at,
                                     bool wide, R (&out)[kPack]) {
  Pack<R> pack;
  pack.load(type, x.data, begin_of(x, row) + at.c, at.n, wide);
#pragma unroll
  for (int i = 0; i < kPack; ++i) out[i] = pack.get(type, i);
}

template <class How>
__global__ void __launch_bounds__(kThreads) add_norm(const AddNorm p, const How how) {
  using R = typename How::Real;
  const int lanes = how.lanes;
  const Wide wide = how.wide;
  const int64_t row = int64_t(blockIdx.x) * (kThreads / lanes) + int(threadIdx.x) / lanes;
  const Place at(p.D, how);
  const bool mine = row < p.rows && at.n > 0;
  R s[kPack] = {}, squares = 0;
  if (mine) {
    load(how.x, p.x, row, at, wide.x, s);
    if (p.y.data) {
      R y[kPack];
      load(how.y, p.y, row, at, wide.y, y);
#pragma unroll
      for (int i = 0; i < kPack; ++i) s[i] += y[i];
      store_pack(how.x, p.s.data, row * p.s.stride + at.c, at.n, wide.s, s);
      if (how.x == Type::kBFloat16)  // the norm is that of what is stored
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
  store_pack(how.h, p.h.data, row * p.h.stride + at.c, at.n, wide.h, s);
}

// A block takes every gridDim.x-th group of rows; a thread always has the same columns, so that
// its share of dweight stays in registers until the end.
template <class How>
__global__ void __launch_bounds__(kThreads, How::kFull ? 4 : 1)
    gradients(const AddNorm p, const AddNormGradient g, const How how) {
  using R = typename How::Real;
  __shared__ R sums[kThreads * kPack];
  const int lanes = how.lanes, at_once = kThreads / lanes, own = int(threadIdx.x) / lanes;
  const Wide wide = how.wide;
  const Place at(p.D, how);
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
      load(how.x, p.s, row, at, wide.s, s);
      load(how.h, g.dh, row, at, wide.dh, dh);
      if (g.ds.data) load(how.x, g.ds, row, at, wide.ds, dx);
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
    store_pack(how.x, g.dx.data, row * g.dx.stride + at.c, at.n, wide.dx, dx);
    if (g.dy.data) store_pack(how.y, g.dy.data, row * g.dy.stride + at.c, at.n, wide.dy, dx);
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

template <Type kX, Type kY, Type kH, class F> void for_lanes(int lanes, F&& f) {
  switch (lanes) {
    case 4: return f(Known<kX, kY, kH, 4>());
    case 8: return f(Known<kX, kY, kH, 8>());
    case 16: return f(Known<kX, kY, kH, 16>());
    default: return f(Known<kX, kY, kH, 32>());
  }
}

// Calls f with what is known. A type that is not read may be any.
template <class F> void for_types(const AddNorm& p, bool reads_y, const Wide& wide, F&& f) {
  check(p.D <= kAddNormMost, "[add_norm] rows have up to ", kAddNormMost, " values, got ", p.D);
  constexpr Type kNarrow = Type::kBFloat16, kSingle = Type::kFloat32;
  const int lanes = lanes_of(p.D);
  const bool full = lanes >= 4 && p.D == int64_t(lanes) * kPack && wide.x && wide.y && wide.s &&
                    wide.h && wide.ds && wide.dh && wide.dx && wide.dy;
  const auto are = [&](Type x, Type y, Type h) {
    return full && p.x_type == x && (!reads_y || p.y_type == y) && p.h_type == h;
  };
  if (are(kSingle, kNarrow, kNarrow)) return for_lanes<kSingle, kNarrow, kNarrow>(lanes, f);
  if (are(kNarrow, kNarrow, kNarrow)) return for_lanes<kNarrow, kNarrow, kNarrow>(lanes, f);
  if (are(kSingle, kSingle, kSingle)) return for_lanes<kSingle, kSingle, kSingle>(lanes, f);
  const Anything any{p.x_type, p.y_type, p.h_type, lanes, wide};
  p.x_type == Type::kFloat64 ? f(AnythingDouble{any}) : f(any);
}

}  // namespace

void add_norm_forward(const AddNorm& p, void* stream) {
  if (p.rows == 0 || p.D == 0) return;
  const int lanes = lanes_of(p.D);
  const int64_t blocks = (p.rows * lanes + kThreads - 1) / kThreads;
  check(blocks < (int64_t(1) << 31), "[add_norm] too many rows for a grid");
  Wide wide;
  wide.x = on_packs(p.x, p.x_type), wide.y = on_packs(p.y, p.y_type);
  wide.s = on_packs(p.s, p.x_type), wide.h = on_packs(p.h, p.h_type);
  for_types(p, p.y.data != nullptr, wide, [&](auto how) {
    add_norm<<<unsigned(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(p, how);
  });
  check_launch("add_norm");
}

int64_t add_norm_parts(int64_t rows, int64_t D) {
  const int64_t at_once = kThreads / lanes_of(D), groups = (rows + at_once - 1) / at_once;
  return groups < kMostParts ? groups : kMostParts;
}

void add_norm_backward(const AddNorm& p, const AddNormGradient& g, void* stream) {
  if (p.rows == 0 || p.D == 0) return;
  const int64_t blocks = add_norm_parts(p.rows, p.D);
  Wide wide;
  wide.s = on_packs(p.s, p.x_type), wide.ds = on_packs(g.ds, p.x_type);
  wide.dh = on_packs(g.dh, p.h_type), wide.dx = on_packs(g.dx, p.x_type);
  wide.dy = on_packs(g.dy, p.y_type);
  for_types(p, g.dy.data != nullptr, wide, [&](auto how) {
    gradients<<<unsigned(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(p, g, how);
  });
  check_launch("add_norm");
}

}  // namespace lrnn::kernels::cuda
