#include "kernels/cuda/diagonal/chunk_pairs.cuh"

// The states of gated linear attention between chunks (chunk.cuh), and backwards their gradients G:
//
//   S after = (decay of the chunk) S before + (r k) v^T
//   G before = (decay of the chunk) G after + scale (p q) d_o^T
//
// First the products of all chunks at once, then one walk over the chunks, two or four columns of a
// key a thread, which leaves the state before each chunk, or the gradient after it, in their place.
namespace lrnn::kernels::cuda {
namespace {

template <int kKeys, bool kReverse>
__global__ void __launch_bounds__(4 * kKeys, 1024 / (4 * kKeys))
    add_chunks(const DiagonalInputs p, const Rows keys, const Rows values, const GlaStates to,
               const GlaWide wide) {
  using Shape = GlaShape<kKeys>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ float whole[kGlaBlocks * kKeys];
  const GlaChunk at(p);
  if (at.count == 0) return;
  const GlaPlace<kKeys> on;
  const typename Shape::Keys x(memory);
  float* const log_decay = reinterpret_cast<float*>(memory);
  uint16_t* const rows = reinterpret_cast<uint16_t*>(memory + kGlaTokens * kKeys * 4);
  const typename Shape::Values v(memory + kGlaTokens * kKeys * 6);
  fetch_rows<float, kKeys>(log_decay, p.log_decay, at, p.K, wide.log_decay);
  fetch_rows<uint16_t, kKeys>(rows, keys, at, p.K, kReverse ? wide.q : wide.k);
  copy_commit();
  fetch_values<Shape::kThreads>(v, values, at, p.V, 0, kReverse ? wide.o : wide.v);
  copy_commit();
  copy_wait<1>();
  __syncthreads();
  GlaDecays decays;
  GlaBits k;
  decays.load<kKeys>(log_decay + on.begin());
  k.load<kKeys>(rows + on.begin());
  Sixteen f;
  kReverse ? decays.from_begin(f) : decays.to_end(f);
  whole[on.block * kKeys + on.key] = kReverse ? f[kGlaBlock - 1] : f[0] * decays.a[0];
  __syncthreads();
  const GlaWhole<kKeys> of{whole};
  const float by = kReverse ? of.before(on.block, on.key) : of.after(on.block, on.key);
#pragma unroll
  for (int t = 0; t < kGlaBlock; ++t) f[t] *= by * k.at(t);
  put_tokens(x, on.key, on.block * kGlaBlock, f);
  if (on.block == 0)
    to.decays[at.item() * kKeys + on.key] = of.before(4, on.key) * whole[3 * kKeys + on.key];
  float* const state = to.states + at.item() * to.record;
  const float scale = kReverse ? float(p.scale) : 1.f;
  // A warp has 16 keys of half of the columns.
  const int row = on.warp / 2 * 16, column = on.warp % 2 * 32;
  for (int tile = 0; tile < to.tiles; ++tile) {
    copy_wait<0>();
    __syncthreads();
    float sum[4][4] = {};
#pragma unroll
    for (int t = 0; t < kGlaTokens; t += 16) {
      const auto a = x.a_rows(row, t);
      multiply(sum[0], sum[1], a, v.b_columns(t, column));
      multiply(sum[2], sum[3], a, v.b_columns(t, column + 16));
    }
#pragma unroll
    for (int n = 0; n < 4; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<float2*>(
            state + (int64_t(tile) * kKeys + row + on.g + 8 * half) * kGlaColumns + column + 8 * n +
            2 * on.c) = make_float2(scale * sum[n][2 * half], scale * sum[n][2 * half + 1]);
    if (tile + 1 == to.tiles) break;
    __syncthreads();
    fetch_values<Shape::kThreads>(v, values, at, p.V, (tile + 1) * kGlaColumns,
                                  kReverse ? wide.o : wide.v);
    copy_commit();
  }
}

template <int kEach> struct alignas(4 * kEach) Numbers { float x[kEach]; };

// kEach columns of a key a thread.
template <int kKeys, int kEach, bool kReverse>
__global__ void __launch_bounds__(128)
    walk(const DiagonalInputs p, const GlaStates states, const void* begin, void* end) {
  constexpr int kAtOnce = 8;
  const int64_t per = states.record / kEach,  // threads of a head
      i = int64_t(blockIdx.x) * 128 + threadIdx.x, head = i / per;
  if (head >= p.S * p.H) return;  // whole warps
  const int64_t s = head / p.H, h = head - s * p.H;
  const int element = int(i - head * per) * kEach, key = element / kGlaColumns % kKeys;
  const int64_t column =
      int64_t(element / (kGlaColumns * kKeys)) * kGlaColumns + element % kGlaColumns;
  const Span span = span_of(p, s);
  const int chunks = int((span.length + kGlaTokens - 1) / kGlaTokens);
  const int64_t first = first_kept(p, s, kGlaTokens) * p.H + h;
  const int64_t step = (kReverse ? -1 : 1) * p.H, from = first + (kReverse ? chunks - 1 : 0) * p.H;
  const float* sums = states.states + from * states.record + element;
  const float* decays = states.decays + from * kKeys + key;
  // Where the parts of these columns go: among their eight.
  uint16_t* parts =
      reinterpret_cast<uint16_t*>(states.states + from * states.record + element / 8 * 8) +
      element % 8;
  Numbers<kEach> S;
  const int64_t outside = (head * p.K + key) * p.V + column;
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    S.x[j] = begin && key < p.K && column + j < p.V ? static_cast<const float*>(begin)[outside + j]
                                                    : 0.f;
  struct Batch {
    Numbers<kEach> sum[kAtOnce];
    float decay[kAtOnce];
  };
  const auto fetch = [&](Batch& to, int left) {
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      if (n < left) {
        to.sum[n] = *reinterpret_cast<const Numbers<kEach>*>(sums);
        to.decay[n] = *decays;
      }
      sums += step * states.record, decays += step * kKeys;
    }
  };
  Batch now, next;
  fetch(now, chunks);  // before other lanes put parts there
  for (int chunk = 0; chunk < chunks; chunk += kAtOnce) {
    fetch(next, chunks - chunk - kAtOnce);
    __syncwarp();
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      if (chunk + n < chunks) {
        uint32_t hi[kEach / 2], lo[kEach / 2];
#pragma unroll
        for (int j = 0; j < kEach; j += 2) {
          hi[j / 2] = pack(S.x[j], S.x[j + 1]);
          lo[j / 2] = pack_lo(S.x[j], S.x[j + 1], hi[j / 2]);
        }
        if constexpr (kEach == 4) {
          *reinterpret_cast<uint2*>(parts) = make_uint2(hi[0], hi[1]);
          *reinterpret_cast<uint2*>(parts + 8) = make_uint2(lo[0], lo[1]);
        } else {
          *reinterpret_cast<uint32_t*>(parts) = hi[0];
          *reinterpret_cast<uint32_t*>(parts + 8) = lo[0];
        }
#pragma unroll
        for (int j = 0; j < kEach; ++j) S.x[j] = fmaf(now.decay[n], S.x[j], now.sum[n].x[j]);
      }
      parts += step * states.record * 2;
    }
    now = next;
  }
  if (!end) return;
#pragma unroll
  for (int j = 0; j < kEach; ++j)
    if (key < p.K && column + j < p.V) static_cast<float*>(end)[outside + j] = S.x[j];
}

// What the walk begins with, or null for zeros, and where it leaves what it ends with, or null.
struct Ends {
  const void* begin;
  void* end;
};

template <bool kReverse>
void make_states(const DiagonalInputs& p, const Rows& keys, const Rows& values, const GlaStates& to,
                 const Ends& ends, cudaStream_t stream) {
  with_gla_keys(p, [&](auto number) {
    constexpr int kKeys = decltype(number)::value;
    constexpr int kBytes = kGlaTokens * kKeys * 6 + GlaShape<kKeys>::Values::kBytes;
    static_assert(kGlaTokens * kKeys * 6 >= GlaShape<kKeys>::Keys::kBytes);
    allow_shared(add_chunks<kKeys, kReverse>, kBytes);
    if (gla_blocks(p) > 0)
      add_chunks<kKeys, kReverse>
          <<<gla_blocks(p), 4 * kKeys, kBytes, stream>>>(p, keys, values, to, GlaWide(p, values));
    const int64_t elements = p.S * p.H * to.record;
    const bool few = elements < int64_t(chip().processors) * 4096;
    const int64_t blocks = elements / (few ? 256 : 512);
    check(blocks < (int64_t(1) << 31), "[diagonal] too many states for a grid");
    auto* const kernel = few ? walk<kKeys, 2, kReverse> : walk<kKeys, 4, kReverse>;
    kernel<<<unsigned(blocks), 128, 0, stream>>>(p, to, ends.begin, ends.end);
  });
}

}  // namespace

int64_t diagonal_chunk_states(const DiagonalInputs& p) { return GlaStates(p, nullptr).total; }

void gla_states(const DiagonalForward& p, const GlaStates& to, cudaStream_t stream) {
  make_states<false>(p, p.k, p.v, to, {p.state, p.final_state}, stream);
}
void gla_dstates(const DiagonalBackward& p, const GlaStates& to, cudaStream_t stream) {
  make_states<true>(p, p.q, p.d_o, to, {p.d_final_state, p.dstate}, stream);
}

}  // namespace lrnn::kernels::cuda
