#include <algorithm>

#include "kernels/cuda/rows/row_array.cuh"
#include "kernels/cuda/rows/rows.h"

// A row belongs to as many neighbouring threads as it has packs of eight values: part of a warp,
// or, where a warp does not do, a block. A thread keeps its pack in registers between the two looks
// at a row. Where rows are full packs on 16 bytes, in types the models have, the compiler knows it:
// a load behind a branch waits for the one before.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kMostThreads = kAddNormMost / kPack;
constexpr int64_t kMostParts = 528;

// The threads of a row, and of a block.
int team_of(int64_t D) {
  return D <= 32 * kPack ? lanes_of(D) : int((D + 32 * kPack - 1) / (32 * kPack) * 32);
}
int threads_of(int64_t D) { return team_of(D) > 32 ? team_of(D) : kThreads; }

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
template <Type kX, Type kY, Type kH> struct KnownTypes {
  using Real = float;
  static constexpr Type x = kX, y = kY, h = kH;
  static constexpr Wide wide{};
  static constexpr bool kFull = true;  // packs
};
template <Type kX, Type kY, Type kH, int kLanes> struct Known : KnownTypes<kX, kY, kH> {
  static constexpr int lanes = kLanes;
};
template <Type kX, Type kY, Type kH> struct KnownBlock : KnownTypes<kX, kY, kH> { int lanes; };

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

// The sums of a row, each over its lanes, for all of them. More than a warp are a whole block, all
// of whose threads come here.
template <int kSums, class R> __device__ __forceinline__ void sum_row(R (&x)[kSums], int lanes) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) x[i] = sum_of_lanes(x[i], min(lanes, 32));
  if (lanes <= 32) return;
  __shared__ R of_warp[kSums][kMostThreads / 32];
  const int warps = lanes / 32;
  __syncthreads();  // whoever still reads those of the row before
#pragma unroll
  for (int i = 0; i < kSums; ++i)
    if (threadIdx.x % 32 == 0) of_warp[i][threadIdx.x / 32] = x[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kSums; ++i) {
    x[i] = of_warp[i][0];
    for (int warp = 1; warp < warps; ++warp) x[i] += of_warp[i][warp];
  }
}

template <class How>
__global__ void __launch_bounds__(kMostThreads) add_norm(const AddNorm p, const How how) {
  using R = typename How::Real;
  const int lanes = how.lanes;
  const Wide wide = how.wide;
  const int64_t row = int64_t(blockIdx.x) * (int(blockDim.x) / lanes) + int(threadIdx.x) / lanes;
  const Place at(p.D, how);
  const bool mine = row < p.rows && at.n > 0;
  R s[kPack] = {}, squares[1] = {};
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
    for (int i = 0; i < kPack; ++i) squares[0] += s[i] * s[i];
  }
  sum_row(squares, lanes);
  const R r = inverse_root(squares[0] / R(p.D) + R(p.eps));
  if (!mine) return;
  const R* const weight = static_cast<const R*>(p.weight);
#pragma unroll
  for (int i = 0; i < kPack; ++i) s[i] *= r * (i < at.n ? weight[at.c + i] : R(0));
  store_pack(how.h, p.h.data, row * p.h.stride + at.c, at.n, wide.h, s);
}

// The same of x alone, a warp a row and the next one on its way: a block that waits for its warps
// twice a row leaves memory idle. (With y there is enough to read, and blocks are no slower.) It
// adds up its packs of 32 lanes as the warps of a block would: the bits are the same.
template <Type kX, Type kH, int kPacks>
__global__ void __launch_bounds__(kThreads) norm_by_warps(const AddNorm p) {
  constexpr int kWarps = kThreads / 32;
  const int64_t step = int64_t(gridDim.x) * kWarps, column = threadIdx.x % 32 * kPack;
  Pack<float> x[kPacks];
  const auto fetch = [&](int64_t row) {
#pragma unroll
    for (int j = 0; j < kPacks; ++j)
      x[j].load(kX, p.x.data, begin_of(p.x, row) + column + j * 32 * kPack, kPack, true);
  };
  int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row < p.rows) fetch(row);
  for (; row < p.rows; row += step) {
    float s[kPacks][kPack], total = 0;
#pragma unroll
    for (int j = 0; j < kPacks; ++j)
#pragma unroll
      for (int i = 0; i < kPack; ++i) s[j][i] = x[j].get(kX, i);
    if (row + step < p.rows) fetch(row + step);
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      float squares = 0;
#pragma unroll
      for (int i = 0; i < kPack; ++i) squares += s[j][i] * s[j][i];
      squares = sum_of_lanes(squares, 32);
      total = j == 0 ? squares : total + squares;
    }
    const float r = inverse_root(total / float(p.D) + float(p.eps));
    const float4* const weight = static_cast<const float4*>(p.weight);
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const int64_t c = column + j * 32 * kPack;
      const float4 low = weight[c / 4], high = weight[c / 4 + 1];
      const float w[kPack] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int i = 0; i < kPack; ++i) s[j][i] *= r * w[i];
      store_pack(kH, p.h.data, row * p.h.stride + c, kPack, true, s[j]);
    }
  }
}

// A block takes every gridDim.x-th group of rows; a thread always has the same columns, so that
// its share of dweight stays in registers until the end.
template <class How>
__global__ void __launch_bounds__(How::kFull ? kThreads : kMostThreads, How::kFull ? 4 : 1)
    gradients(const AddNorm p, const AddNormGradient g, const How how) {
  using R = typename How::Real;
  __shared__ R sums[kThreads * kPack];
  const int lanes = how.lanes, at_once = int(blockDim.x) / lanes, own = int(threadIdx.x) / lanes;
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
    R s[kPack] = {}, dh[kPack] = {}, dx[kPack] = {}, sums_of_row[2] = {};
    if (mine) {
      load(how.x, p.s, row, at, wide.s, s);
      load(how.h, g.dh, row, at, wide.dh, dh);
      if (g.ds.data) load(how.x, g.ds, row, at, wide.ds, dx);
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      sums_of_row[0] += s[i] * s[i], sums_of_row[1] += s[i] * dh[i] * w[i];
    sum_row(sums_of_row, lanes);
    const R r = inverse_root(sums_of_row[0] / R(p.D) + R(p.eps));
    const R back = sums_of_row[1] / R(p.D) * r * r;
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
  R* const partial = static_cast<R*>(g.partial) + int64_t(blockIdx.x) * p.D;
  if (at_once == 1) {  // a thread's columns are its own
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (i < at.n) partial[at.c + i] = dweight[i];
    return;
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) sums[threadIdx.x * kPack + i] = dweight[i];
  __syncthreads();
  for (int c = int(threadIdx.x); c < p.D; c += kThreads) {
    R sum = 0;
    for (int k = 0; k < at_once; ++k) sum += sums[k * lanes * kPack + c];
    partial[c] = sum;
  }
}

template <Type kX, Type kY, Type kH, class F> void for_lanes(int lanes, F&& f) {
  switch (lanes) {
    case 4: return f(Known<kX, kY, kH, 4>());
    case 8: return f(Known<kX, kY, kH, 8>());
    case 16: return f(Known<kX, kY, kH, 16>());
    case 32: return f(Known<kX, kY, kH, 32>());
    default: return f(KnownBlock<kX, kY, kH>{{}, lanes});
  }
}

// Calls f with what is known. A type that is not read may be any.
template <class F> void for_types(const AddNorm& p, bool reads_y, const Wide& wide, F&& f) {
  check(p.D <= kAddNormMost, "[add_norm] rows have up to ", kAddNormMost, " values, got ", p.D);
  constexpr Type kNarrow = Type::kBFloat16, kSingle = Type::kFloat32;
  const int lanes = team_of(p.D);
  const bool full = lanes >= 4 && lanes <= kThreads && p.D == int64_t(lanes) * kPack && wide.x &&
                    wide.y && wide.s && wide.h && wide.ds && wide.dh && wide.dx && wide.dy;
  const auto are = [&](Type x, Type y, Type h) {
    return full && p.x_type == x && (!reads_y || p.y_type == y) && p.h_type == h;
  };
  if (are(kSingle, kNarrow, kNarrow)) return for_lanes<kSingle, kNarrow, kNarrow>(lanes, f);
  if (are(kNarrow, kNarrow, kNarrow)) return for_lanes<kNarrow, kNarrow, kNarrow>(lanes, f);
  if (are(kSingle, kSingle, kSingle)) return for_lanes<kSingle, kSingle, kSingle>(lanes, f);
  const Anything any{p.x_type, p.y_type, p.h_type, lanes, wide};
  p.x_type == Type::kFloat64 ? f(AnythingDouble{any}) : f(any);
}

// Whether a warp takes a row, and then does it.
template <Type kX, Type kY, Type kH>
bool forward_by_warps(const AddNorm& p, const KnownBlock<kX, kY, kH>& how, cudaStream_t on) {
  if (p.y.data || reinterpret_cast<uintptr_t>(p.weight) % 16) return false;
  const int64_t blocks = (p.rows + kThreads / 32 - 1) / (kThreads / 32);
  const unsigned grid = unsigned(std::min<int64_t>(blocks, kMostParts));
  const auto launch = [&]<int kPacks>() {
    norm_by_warps<kX, kH, kPacks><<<grid, kThreads, 0, on>>>(p);
  };
  switch (how.lanes / 32) {
    case 2: launch.template operator()<2>(); break;
    case 3: launch.template operator()<3>(); break;
    case 4: launch.template operator()<4>(); break;
    case 6: launch.template operator()<6>(); break;
    case 8: launch.template operator()<8>(); break;
    default: return false;
  }
  return true;
}
template <class How> bool forward_by_warps(const AddNorm&, const How&, cudaStream_t) {
  return false;
}

}  // namespace

void add_norm_forward(const AddNorm& p, void* stream) {
  if (p.rows == 0 || p.D == 0) return;
  const int threads = threads_of(p.D);
  const int64_t blocks = (p.rows * team_of(p.D) + threads - 1) / threads;
  check(blocks < (int64_t(1) << 31), "[add_norm] too many rows for a grid");
  Wide wide;
  wide.x = on_packs(p.x, p.x_type), wide.y = on_packs(p.y, p.y_type);
  wide.s = on_packs(p.s, p.x_type), wide.h = on_packs(p.h, p.h_type);
  const auto on = static_cast<cudaStream_t>(stream);
  for_types(p, p.y.data != nullptr, wide, [&](auto how) {
    if (!forward_by_warps(p, how, on)) add_norm<<<unsigned(blocks), threads, 0, on>>>(p, how);
  });
  check_launch("add_norm");
}

// As many as a large GPU has room for at once.
int64_t add_norm_parts(int64_t rows, int64_t D) {
  const int64_t at_once = threads_of(D) / team_of(D), groups = (rows + at_once - 1) / at_once;
  const int64_t most = kMostParts * (threads_of(D) < kThreads ? kThreads / threads_of(D) : 1);
  return groups < most ? groups : most;
}

void add_norm_backward(const AddNorm& p, const AddNormGradient& g, void* stream) {
  if (p.rows == 0 || p.D == 0) return;
  const int64_t blocks = add_norm_parts(p.rows, p.D);
  Wide wide;
  wide.s = on_packs(p.s, p.x_type), wide.ds = on_packs(g.ds, p.x_type);
  wide.dh = on_packs(g.dh, p.h_type), wide.dx = on_packs(g.dx, p.x_type);
  wide.dy = on_packs(g.dy, p.y_type);
  for_types(p, g.dy.data != nullptr, wide, [&](auto how) {
    gradients<<<unsigned(blocks), threads_of(p.D), 0, static_cast<cudaStream_t>(stream)>>>(p, g,
                                                                                           how);
  });
  check_launch("add_norm");
}

}  // namespace lrnn::kernels::cuda
