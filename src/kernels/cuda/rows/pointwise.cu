#include "kernels/cuda/rows/row_array.cuh"
#include "kernels/cuda/tile/functions.cuh"

// A row belongs to as many neighbouring threads as it has packs of eight values, up to a warp.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kColumns = 32, kSlices = kThreads / kColumns;

// Calls f(first column, how many) for this thread's packs of a row.
template <class F> __device__ __forceinline__ void each_pack(int64_t D, int lanes, F&& f) {
  for (int64_t c = int64_t(threadIdx.x % lanes) * kPack; c < D; c += int64_t(lanes) * kPack)
    f(c, int(min(D - c, int64_t(kPack))));
}

template <class R>
__global__ void __launch_bounds__(kThreads)
    norm(const NormInputs p, const RowArray y, int lanes, bool wide_x, bool wide_y) {
  const int64_t row = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / lanes;
  const bool valid = row < p.rows;
  const int64_t begin = begin_of(p.x, row);
  Pack<R> x;
  R squares = 0;
  if (valid)
    each_pack(p.D, lanes, [&](int64_t c, int n) {
      x.load(p.type, p.x.data, begin + c, n, wide_x);
#pragma unroll
      for (int i = 0; i < kPack; ++i) squares += x.get(p.type, i) * x.get(p.type, i);
    });
  const R r = inverse_root(R(p.share) * sum_of_lanes(squares, lanes) + R(p.eps));
  if (!valid) return;
  const R* const weight = static_cast<const R*>(p.weight);
  each_pack(p.D, lanes, [&](int64_t c, int n) {
    x.load(p.type, p.x.data, begin + c, n, wide_x);
    R out[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      out[i] = x.get(p.type, i) * r * (weight && i < n ? weight[c + i] : R(1));
    store_pack(p.type, y.data, row * y.stride + c, n, wide_y, out);
  });
}

template <class R>
__global__ void __launch_bounds__(kThreads)
    norm_inputs(const NormInputs p, const RowArray dy, const RowArray dx, R* inverse, int lanes,
                bool wide_x, bool wide_dy, bool wide_dx) {
  const int64_t row = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / lanes;
  const bool valid = row < p.rows;
  const int64_t begin = begin_of(p.x, row);
  const R* const weight = static_cast<const R*>(p.weight);
  Pack<R> x, g;
  R squares = 0, along = 0;
  const auto load = [&](int64_t c, int n) {
    x.load(p.type, p.x.data, begin + c, n, wide_x);
    g.load(p.type, dy.data, row * dy.stride + c, n, wide_dy);
  };
  const auto scaled = [&](int64_t c, int i, int n) {
    return g.get(p.type, i) * (weight && i < n ? weight[c + i] : R(1));
  };
  if (valid)
    each_pack(p.D, lanes, [&](int64_t c, int n) {
      load(c, n);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        squares += x.get(p.type, i) * x.get(p.type, i);
        along += x.get(p.type, i) * scaled(c, i, n);
      }
    });
  const R r = inverse_root(R(p.share) * sum_of_lanes(squares, lanes) + R(p.eps));
  const R back = sum_of_lanes(along, lanes) * R(p.share) * r * r;
  if (!valid) return;
  if (inverse && threadIdx.x % lanes == 0) inverse[row] = r;
  each_pack(p.D, lanes, [&](int64_t c, int n) {
    load(c, n);
    R out[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) out[i] = r * (scaled(c, i, n) - x.get(p.type, i) * back);
    store_pack(p.type, dx.data, row * dx.stride + c, n, wide_dx, out);
  });
}

// A range of rows and some columns: each slice of threads takes every eighth row.
template <class R>
__global__ void __launch_bounds__(kThreads)
    norm_weights(const NormInputs p, const RowArray dy, const R* inverse, R* partial) {
  __shared__ R sums[kSlices][kColumns];
  const int column = threadIdx.x % kColumns, slice = threadIdx.x / kColumns;
  const int64_t c = int64_t(blockIdx.y) * kColumns + column,
                first = int64_t(blockIdx.x) * kNormRange, last = min(first + kNormRange, p.rows);
  R sum = 0;
  if (c < p.D) {
#pragma unroll 4
    for (int64_t row = first + slice; row < last; row += kSlices)
      sum += load_as<R>(p.type, dy.data, row * dy.stride + c) *
             load_as<R>(p.type, p.x.data, begin_of(p.x, row) + c) * inverse[row];
  }
  sums[slice][column] = sum;
  __syncthreads();
  if (slice > 0 || c >= p.D) return;
  sum = 0;
  for (int i = 0; i < kSlices; ++i) sum += sums[i][column];
  partial[int64_t(blockIdx.x) * p.D + c] = sum;
}

struct Flat {  // this thread's pack of a row
  int64_t row, c;
  int n;
  __device__ __forceinline__ explicit Flat(const RowSize& size) {
    const int64_t packs = (size.D + kPack - 1) / kPack,
                  at = int64_t(blockIdx.x) * kThreads + threadIdx.x;
    row = at / packs, c = (at - row * packs) * kPack;
    n = row < size.rows ? int(min(size.D - c, int64_t(kPack))) : 0;
  }
};

template <class R>
__global__ void __launch_bounds__(kThreads) swiglu(const RowSize size, const RowArray gate,
                                                   const RowArray up, const RowArray h, bool wide) {
  const Flat at(size);
  if (at.n == 0) return;
  Pack<R> g, u;
  g.load(size.type, gate.data, at.row * gate.stride + at.c, at.n, wide);
  u.load(size.type, up.data, at.row * up.stride + at.c, at.n, wide);
  R out[kPack];
#pragma unroll
  for (int i = 0; i < kPack; ++i) out[i] = silu(g.get(size.type, i)) * u.get(size.type, i);
  store_pack(size.type, h.data, at.row * h.stride + at.c, at.n, wide, out);
}

template <class R>
__global__ void __launch_bounds__(kThreads)
    swiglu_gradients(const RowSize size, const RowArray dh, const RowArray gate, const RowArray up,
                     const RowArray dgate, const RowArray dup, bool wide) {
  const Flat at(size);
  if (at.n == 0) return;
  Pack<R> d, g, u;
  d.load(size.type, dh.data, at.row * dh.stride + at.c, at.n, wide);
  g.load(size.type, gate.data, at.row * gate.stride + at.c, at.n, wide);
  u.load(size.type, up.data, at.row * up.stride + at.c, at.n, wide);
  R to_gate[kPack], to_up[kPack];
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    const R x = g.get(size.type, i), dy = d.get(size.type, i);
    to_gate[i] = dy * u.get(size.type, i) * silu_slope(x), to_up[i] = dy * silu(x);
  }
  store_pack(size.type, dgate.data, at.row * dgate.stride + at.c, at.n, wide, to_gate);
  store_pack(size.type, dup.data, at.row * dup.stride + at.c, at.n, wide, to_up);
}

unsigned blocks_for(int64_t threads) {
  const int64_t blocks = (threads + kThreads - 1) / kThreads;
  check(blocks < (int64_t(1) << 31), "[pointwise] too many rows for a grid");
  return unsigned(blocks);
}

template <class R> void launch_norm(const NormInputs& p, const RowArray& y, cudaStream_t on) {
  const int lanes = lanes_of(p.D);
  norm<R><<<blocks_for(p.rows * lanes), kThreads, 0, on>>>(p, y, lanes, on_packs(p.x, p.type),
                                                           on_packs(y, p.type));
}

template <class R>
void launch_norm_backward(const NormInputs& p, const RowArray& dy, const RowArray& dx,
                          void* inverse, void* dweight, cudaStream_t on) {
  const int lanes = lanes_of(p.D);
  norm_inputs<R><<<blocks_for(p.rows * lanes), kThreads, 0, on>>>(
      p, dy, dx, static_cast<R*>(inverse), lanes, on_packs(p.x, p.type), on_packs(dy, p.type),
      on_packs(dx, p.type));
  if (!dweight) return;
  const dim3 grid(unsigned((p.rows + kNormRange - 1) / kNormRange),
                  unsigned((p.D + kColumns - 1) / kColumns));
  norm_weights<R>
      <<<grid, kThreads, 0, on>>>(p, dy, static_cast<const R*>(inverse), static_cast<R*>(dweight));
}

}  // namespace

void norm_forward(const NormInputs& p, const RowArray& y, void* stream) {
  if (p.rows == 0 || p.D == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  p.type == Type::kFloat64 ? launch_norm<double>(p, y, on) : launch_norm<float>(p, y, on);
  check_launch("norm");
}

void norm_backward(const NormInputs& p, const RowArray& dy, const RowArray& dx, void* inverse,
                   void* dweight, void* stream) {
  if (p.rows == 0 || p.D == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  p.type == Type::kFloat64 ? launch_norm_backward<double>(p, dy, dx, inverse, dweight, on)
                           : launch_norm_backward<float>(p, dy, dx, inverse, dweight, on);
  check_launch("norm");
}

void swiglu_forward(const RowSize& size, const RowArray& gate, const RowArray& up,
                    const RowArray& h, void* stream) {
  if (size.rows == 0 || size.D == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  const bool wide = on_packs(gate, size.type) && on_packs(up, size.type) && on_packs(h, size.type);
  const unsigned blocks = blocks_for(size.rows * ((size.D + kPack - 1) / kPack));
  if (size.type == Type::kFloat64)
    swiglu<double><<<blocks, kThreads, 0, on>>>(size, gate, up, h, wide);
  else
    swiglu<float><<<blocks, kThreads, 0, on>>>(size, gate, up, h, wide);
  check_launch("swiglu");
}

void swiglu_backward(const RowSize& size, const RowArray& dh, const RowArray& gate,
                     const RowArray& up, const RowArray& dgate, const RowArray& dup, void* stream) {
  if (size.rows == 0 || size.D == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  bool wide = true;
  for (const RowArray* x : {&dh, &gate, &up, &dgate, &dup}) wide = wide && on_packs(*x, size.type);
  const unsigned blocks = blocks_for(size.rows * ((size.D + kPack - 1) / kPack));
  if (size.type == Type::kFloat64)
    swiglu_gradients<double><<<blocks, kThreads, 0, on>>>(size, dh, gate, up, dgate, dup, wide);
  else
    swiglu_gradients<float><<<blocks, kThreads, 0, on>>>(size, dh, gate, up, dgate, dup, wide);
  check_launch("swiglu");
}

}  // namespace lrnn::kernels::cuda
