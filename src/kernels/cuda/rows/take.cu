#include "kernels/cuda/rows/rows.h"
#include "kernels/cuda/tile/mma.cuh"
#include "kernels/cuda/tile/pack.cuh"

// take: a gather of rows. give: the scatter of their gradients, as a sum in one order, without
// atomics: over runs of dy for tables of few rows, over the sorted index for others.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kColumns = 32, kSlices = kThreads / kColumns;

template <class Word> __device__ __forceinline__ Word filled(uint32_t bits);
template <> __device__ __forceinline__ uint4 filled<uint4>(uint32_t bits) {
  return make_uint4(bits, bits, bits, bits);
}
template <> __device__ __forceinline__ uint32_t filled<uint32_t>(uint32_t bits) { return bits; }
template <> __device__ __forceinline__ uint16_t filled<uint16_t>(uint32_t bits) {
  return uint16_t(bits);
}

template <class Word>
__global__ void __launch_bounds__(kThreads) take(const Word* table, int64_t rows, int64_t words,
                                                 const int64_t* index, int64_t n, Word* to) {
  const int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x, i = at / words;
  if (i >= n) return;
  const int64_t row = index[i];
  Word x = filled<Word>(row < 0 ? 0u : ~0u);  // zeros, or NaN in every type
  if (row >= 0 && row < rows) x = table[row * words + at - i * words];
  to[at] = x;
}

template <class Word>
void launch_take(const void* table, int64_t rows, int64_t bytes, const int64_t* index, int64_t n,
                 void* to, cudaStream_t stream) {
  const int64_t words = bytes / int64_t(sizeof(Word)),
                blocks = (n * words + kThreads - 1) / kThreads;
  check(blocks < (int64_t(1) << 31), "[take] too many rows for a grid");
  take<Word><<<unsigned(blocks), kThreads, 0, stream>>>(static_cast<const Word*>(table), rows,
                                                        words, index, n, static_cast<Word*>(to));
}

// A run of dy's rows and some columns; each warp adds up every eighth row, in order.
template <class R>
__global__ void __launch_bounds__(kThreads)
    to_few(const GivenRows p, const int64_t* index, int64_t part, R* partial) {
  const int64_t rows = p.rows, D = p.D;
  extern __shared__ __align__(16) unsigned char memory[];
  R* const sums = reinterpret_cast<R*>(memory);  // [slices][rows][columns]
  const int column = threadIdx.x % kColumns, slice = threadIdx.x / kColumns;
  const int64_t c = int64_t(blockIdx.y) * kColumns + column, first = int64_t(blockIdx.x) * part,
                last = min(first + part, p.n);
  R* const own = sums + slice * rows * kColumns + column;
  for (int64_t row = 0; row < rows; ++row) own[row * kColumns] = 0;
  if (c < D) {
#pragma unroll 4
    for (int64_t i = first + slice; i < last; i += kSlices) {
      const int64_t row = index[i];
      const R x = load_as<R>(p.type, p.dy, i * D + c);
      if (row >= 0 && row < rows) own[row * kColumns] += x;
    }
  }
  __syncthreads();
  if (c >= D) return;
  for (int64_t row = slice; row < rows; row += kSlices) {
    R sum = 0;
    for (int i = 0; i < kSlices; ++i) sum += sums[(i * rows + row) * kColumns + column];
    partial[(int64_t(blockIdx.x) * rows + row) * D + c] = sum;
  }
}

// The same for so few rows that their sums fit into registers: a thread has some columns, and all
// threads of a warp look at the same row of dy, so that the choice of a sum is no branch for them.
template <int Columns> struct Piece;  // of a row, as it is stored
template <> struct Piece<8> {
  Pack<float> pack;
  __device__ __forceinline__ void load(Type type, const void* data, int64_t at) {
    pack.load(type, data, at, 8, true);
  }
  __device__ __forceinline__ float get(Type type, int i) const { return pack.get(type, i); }
};
template <> struct Piece<4> {
  uint32_t w[4];
  __device__ __forceinline__ void load(Type type, const void* data, int64_t at) {
    if (type == Type::kBFloat16) {
      const uint2 x = *reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(data) + at);
      w[0] = x.x, w[1] = x.y;
    } else {
      const uint4 x = *reinterpret_cast<const uint4*>(static_cast<const float*>(data) + at);
      w[0] = x.x, w[1] = x.y, w[2] = x.z, w[3] = x.w;
    }
  }
  __device__ __forceinline__ float get(Type type, int i) const {
    if (type != Type::kBFloat16) return __uint_as_float(w[i]);
    return __uint_as_float(i % 2 ? w[i / 2] & 0xffff0000u : w[i / 2] << 16);
  }
};

// own[row] += x by halving: few branches, all of a warp take the same one.
template <int First, int End, int Most, int Columns>
__device__ __forceinline__ void add_to(float (&own)[Most][Columns], int row, Type type,
                                       const Piece<Columns>& x) {
  if constexpr (End - First == 1) {
#pragma unroll
    for (int j = 0; j < Columns; ++j) own[First][j] += x.get(type, j);
  } else {
    constexpr int kMiddle = (First + End) / 2;
    if (row < kMiddle)
      add_to<First, kMiddle>(own, row, type, x);
    else
      add_to<kMiddle, End>(own, row, type, x);
  }
}

template <int Most, int Columns>
__global__ void __launch_bounds__(kThreads)
    to_fewest(const GivenRows p, const int64_t* index, int64_t part, float* partial) {
  const int64_t rows = p.rows, D = p.D;
  __shared__ float sums[kSlices][32 * Columns];
  const int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  const int64_t c = (int64_t(blockIdx.y) * 32 + lane) * Columns, first = int64_t(blockIdx.x) * part,
                last = min(first + part, p.n);
  float own[Most][Columns] = {};
  if (c < D) {
#pragma unroll 4
    for (int64_t i = first + slice; i < last; i += kSlices) {
      const int64_t row = index[i];
      Piece<Columns> x;
      x.load(p.type, p.dy, i * D + c);
      if (row >= 0 && row < rows) add_to<0, Most>(own, int(row), p.type, x);
    }
  }
#pragma unroll
  for (int r = 0; r < Most; ++r) {
    if (r >= rows) return;
    __syncthreads();
#pragma unroll
    for (int j = 0; j < Columns; ++j) sums[slice][lane * Columns + j] = own[r][j];
    __syncthreads();
    const int64_t column = int64_t(blockIdx.y) * 32 * Columns + threadIdx.x;
    if (int(threadIdx.x) >= 32 * Columns || column >= D) continue;
    float sum = 0;
    for (int i = 0; i < kSlices; ++i) sum += sums[i][threadIdx.x];
    partial[(int64_t(blockIdx.x) * rows + r) * D + column] = sum;
  }
}

// The same by tensor cores, for up to 16 rows and packs of 64 columns: dy's rows times a matrix of
// ones and zeros. A warp has a run of dy's rows and 64 columns: lane 4g+c eight of four rows at a
// time, so that its words of two rows make operands without leaving the lane. The columns of an
// operand are then those of number j in every eight.
constexpr int kProductColumns = 64, kProductRows = 16, kProductWarps = kThreads / 32;

// float32 is the sum of three bfloat16.
template <bool Bf> struct Eight {  // values of a row
  uint4 w[Bf ? 1 : 2];
  __device__ __forceinline__ void load(const void* data, int64_t at, bool inside) {
    const auto* const from =
        reinterpret_cast<const uint4*>(static_cast<const char*>(data) + at * (Bf ? 2 : 4));
#pragma unroll
    for (int i = 0; i < (Bf ? 1 : 2); ++i) w[i] = inside ? from[i] : make_uint4(0, 0, 0, 0);
  }
  __device__ __forceinline__ uint32_t word(int i) const {
    const uint4& x = w[i / 4];
    return i % 4 == 0 ? x.x : i % 4 == 1 ? x.y : i % 4 == 2 ? x.z : x.w;
  }
};
template <bool Bf>
__device__ __forceinline__ void add_products(float (&sum)[4], const uint32_t (&ones)[4],
                                             const Eight<Bf> (&x)[4], int j) {
  if constexpr (Bf) {
    const int which = j % 2 ? 0x7632 : 0x5410;
    mma(sum, ones, __byte_perm(x[0].word(j / 2), x[1].word(j / 2), which),
        __byte_perm(x[2].word(j / 2), x[3].word(j / 2), which));
  } else {
    float v[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) v[u] = __uint_as_float(x[u].word(j));
#pragma unroll
    for (int part = 0; part < 3; ++part) {
      const uint32_t first = pack(v[0], v[1]), second = pack(v[2], v[3]);
      mma(sum, ones, first, second);
      v[0] -= low_of(first), v[1] -= high_of(first);
      v[2] -= low_of(second), v[3] -= high_of(second);
    }
  }
}

template <bool Bf>
__global__ void __launch_bounds__(kThreads)
    to_products(const GivenRows p, const int64_t* index, int64_t part, float* partial) {
  const int64_t rows = p.rows, D = p.D;
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
  const int64_t begin = (int64_t(blockIdx.y) * kProductWarps + threadIdx.x / 32) * kProductColumns,
                first = int64_t(blockIdx.x) * part, last = min(first + part, p.n);
  if (begin >= D) return;
  float sums[8][4] = {};
#pragma unroll 2
  for (int64_t base = first; base < last; base += 16) {
    Eight<Bf> x[4];
    int row[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int64_t i = base + u / 2 * 8 + 2 * c + u % 2;
      const bool inside = i < last;
      const int64_t to = inside ? index[i] : -1;
      row[u] = to >= 0 && to < rows ? int(to) : -1;
      x[u].load(p.dy, i * D + begin + g * 8, inside);
    }
    uint32_t ones[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int own = g + u % 2 * 8, at = u / 2 * 2;
      ones[u] = (row[at] == own ? 0x3f80u : 0u) | (row[at + 1] == own ? 0x3f800000u : 0u);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) add_products<Bf>(sums[j], ones, x, j);
  }
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    const int row = g + u / 2 * 8;
    if (row >= rows) continue;
    auto* const to = reinterpret_cast<float4*>(partial + (int64_t(blockIdx.x) * rows + row) * D +
                                               begin + (2 * c + u % 2) * 8);
    to[0] = make_float4(sums[0][u], sums[1][u], sums[2][u], sums[3][u]);
    to[1] = make_float4(sums[4][u], sums[5][u], sums[6][u], sums[7][u]);
  }
}

// Where the first number not below `row` stands.
__device__ __forceinline__ int64_t first_not_below(const int64_t* sorted, int64_t n, int64_t row) {
  int64_t begin = 0, end = n;
  while (begin < end) {
    const int64_t middle = (begin + end) / 2;
    if (sorted[middle] < row)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

template <class R>
__global__ void __launch_bounds__(kThreads)
    to_sorted(const GivenRows p, const int64_t* sorted, const int64_t* order, R* dtable) {
  const int64_t D = p.D;
  __shared__ R sums[kSlices][kColumns];
  const int column = threadIdx.x % kColumns, slice = threadIdx.x / kColumns;
  const int64_t row = blockIdx.x, c = int64_t(blockIdx.y) * kColumns + column;
  const int64_t begin = first_not_below(sorted, p.n, row),
                end = first_not_below(sorted, p.n, row + 1);
  R sum = 0;
  if (c < D) {
#pragma unroll 4
    for (int64_t i = begin + slice; i < end; i += kSlices)
      sum += load_as<R>(p.type, p.dy, order[i] * D + c);
  }
  sums[slice][column] = sum;
  __syncthreads();
  if (slice > 0 || c >= D) return;
  sum = 0;
  for (int i = 0; i < kSlices; ++i) sum += sums[i][column];
  dtable[row * D + c] = sum;
}

// The same for wide rows: a thread has columns of its own, and a block looks for its row once.
constexpr int kWideColumns = 4 * kThreads;

template <class R>
__global__ void __launch_bounds__(kThreads)
    to_sorted_wide(const GivenRows p, const int64_t* sorted, const int64_t* order, R* dtable) {
  const int64_t row = blockIdx.x, D = p.D, c = int64_t(blockIdx.y) * kWideColumns + threadIdx.x;
  const int64_t begin = first_not_below(sorted, p.n, row),
                end = first_not_below(sorted, p.n, row + 1);
  R sum[4] = {};
  for (int64_t i = begin; i < end; ++i) {
    const int64_t from = order[i] * D + c;
#pragma unroll
    for (int u = 0; u < 4; ++u)
      if (c + u * kThreads < D) sum[u] += load_as<R>(p.type, p.dy, from + u * kThreads);
  }
#pragma unroll
  for (int u = 0; u < 4; ++u)
    if (c + u * kThreads < D) dtable[row * D + c + u * kThreads] = sum[u];
}

unsigned column_blocks(int64_t D) { return unsigned((D + kColumns - 1) / kColumns); }

}  // namespace

void take_rows(const void* table, int64_t rows, int64_t bytes, const int64_t* index, int64_t n,
               void* to, void* stream) {
  if (n == 0 || bytes == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  const bool aligned =
      (reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(to)) % 16 == 0;
  if (aligned && bytes % 16 == 0)
    launch_take<uint4>(table, rows, bytes, index, n, to, on);
  else if (bytes % 4 == 0)
    launch_take<uint32_t>(table, rows, bytes, index, n, to, on);
  else
    launch_take<uint16_t>(table, rows, bytes, index, n, to, on);
  check_launch("take");
}

void give_to_few(const GivenRows& p, const int64_t* index, void* partial, void* stream) {
  if (p.n == 0 || p.D == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  const int64_t part = give_part(p.n, p.D);
  const auto parts = unsigned((p.n + part - 1) / part);
  const auto in_registers = [&](auto kernel, int columns) {  // of a block
    const dim3 grid(parts, unsigned((p.D + columns - 1) / columns));
    kernel<<<grid, kThreads, 0, on>>>(p, index, part, static_cast<float*>(partial));
    check_launch("take");
  };
  const bool aligned = p.type != Type::kFloat64 && reinterpret_cast<uintptr_t>(p.dy) % 16 == 0;
  if (aligned && p.rows <= kProductRows && p.D % kProductColumns == 0)
    return in_registers(p.type == Type::kBFloat16 ? to_products<true> : to_products<false>,
                        kProductWarps * kProductColumns);
  if (aligned && p.rows <= 8 && p.D % 8 == 0) return in_registers(to_fewest<8, 8>, 32 * 8);
  if (aligned && p.rows <= 16 && p.D % 4 == 0) return in_registers(to_fewest<16, 4>, 32 * 4);
  const dim3 grid(parts, column_blocks(p.D));
  const auto launch = [&](auto zero) {
    using R = decltype(zero);
    const size_t bytes = sizeof(R) * size_t(p.rows) * kThreads;
    allow_shared(to_few<R>, bytes);
    to_few<R><<<grid, kThreads, bytes, on>>>(p, index, part, static_cast<R*>(partial));
  };
  p.type == Type::kFloat64 ? launch(double()) : launch(float());
  check_launch("take");
}

void give_sorted(const GivenRows& p, const int64_t* sorted, const int64_t* order, void* dtable,
                 void* stream) {
  if (p.rows == 0 || p.D == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  check(p.rows < (int64_t(1) << 31), "[take] the table has too many rows for a grid");
  const bool wide = p.D >= kThreads;
  const auto launch = [&](auto zero) {
    using R = decltype(zero);
    const dim3 grid(unsigned(p.rows),
                    wide ? unsigned((p.D + kWideColumns - 1) / kWideColumns) : column_blocks(p.D));
    const auto kernel = wide ? to_sorted_wide<R> : to_sorted<R>;
    kernel<<<grid, kThreads, 0, on>>>(p, sorted, order, static_cast<R*>(dtable));
  };
  p.type == Type::kFloat64 ? launch(double()) : launch(float());
  check_launch("take");
}

}  // namespace lrnn::kernels::cuda
