#include "kernels/cuda/diagonal/chunk_pairs.cuh"

// The outputs of gated linear attention, all chunks at once, from the states before them
// (chunk.cuh).
namespace lrnn::kernels::cuda {
namespace {

// Rows of keys as they come.
template <int kKeys> struct KeyRows {
  static constexpr int kBytes = kGlaTokens * kKeys * 8;
  float* log_decay;
  uint16_t *q, *k;
  __device__ __forceinline__ explicit KeyRows(unsigned char* memory)
      : log_decay(reinterpret_cast<float*>(memory)),
        q(reinterpret_cast<uint16_t*>(memory + kGlaTokens * kKeys * 4)),
        k(q + kGlaTokens * kKeys) {}
};

// Shared memory, bytes. What the levels within 16 tokens need is there before what is made of all.
template <int kKeys> struct Layout {
  using Shape = GlaShape<kKeys>;
  static constexpr int x16 = 0, x32 = x16 + Shape::Keys::kBytes, q = x32 + Shape::Keys::kBytes,
                       A = q + Shape::Keys::kBytes, S = A + Shape::Pairs::kBytes,
                       v = S + Shape::State::kBytes, near = q, rows = x32,
                       pairs = v + Shape::Values::kBytes,
                       whole = pairs + int(sizeof(float)) * Shape::kGroups * 4 * 256,
                       bytes = whole + int(sizeof(float)) * kGlaBlocks * kKeys;
  static_assert(KeyRows<kKeys>::kBytes <= 2 * Shape::Keys::kBytes);
  static_assert(bytes <= gla_most_shared(kKeys));
  static_assert(Shape::kWarps * Shape::Near::kBytes <= Shape::Keys::kBytes + Shape::Pairs::kBytes);
};

// The pairs of the 16 tokens of a warp, over its 32 keys.
template <int kLevel>
__device__ __forceinline__ void near_level(Tile& A, const Operand<32, kGlaBlock, 2>& near, int lane,
                                           const GlaDecays& decays, const GlaBits& q,
                                           const GlaBits& k) {
  Sixteen f;
  decays.to_middle<kLevel>(f);
#pragma unroll
  for (int t = 0; t < kGlaBlock; ++t) f[t] *= t & kLevel ? q.at(t) : k.at(t);
  put_tokens(near, lane, 0, f);
  __syncwarp();
  add_level<kLevel>(A, near);
  __syncwarp();
}

template <int kKeys>
__global__ void __launch_bounds__(4 * kKeys, kKeys == 64 ? 2 : 1)
    outputs(const DiagonalForward p, const GlaStates from, const GlaWide wide) {
  using Shape = GlaShape<kKeys>;
  using At = Layout<kKeys>;
  extern __shared__ __align__(16) unsigned char memory[];
  const GlaChunk at(p);
  if (at.count == 0) return;
  const GlaPlace<kKeys> on;
  const typename Shape::Keys x16(memory + At::x16), x32(memory + At::x32), pq(memory + At::q);
  const typename Shape::Pairs pairs(memory + At::A);
  const typename Shape::State S(memory + At::S);
  const typename Shape::Values v(memory + At::v);
  const typename Shape::Near near(memory + At::near + on.warp * Shape::Near::kBytes);
  float* const partial = reinterpret_cast<float*>(memory + At::pairs);
  float* const whole = reinterpret_cast<float*>(memory + At::whole);
  const float* const state = from.states + at.item() * from.record;
  const KeyRows<kKeys> rows(memory + At::rows);
  fetch_rows<float, kKeys>(rows.log_decay, p.log_decay, at, p.K, wide.log_decay);
  fetch_rows<uint16_t, kKeys>(rows.q, p.q, at, p.K, wide.q);
  fetch_rows<uint16_t, kKeys>(rows.k, p.k, at, p.K, wide.k);
  copy_commit();
  fetch_values<Shape::kThreads>(v, p.v, at, p.V, 0, wide.v);
  fetch_state<kKeys>(S, state);
  copy_commit();
  copy_wait<1>();
  __syncthreads();
  GlaDecays decays;
  GlaBits q, k;
  decays.load<kKeys>(rows.log_decay + on.begin());
  q.load<kKeys>(rows.q + on.begin()), k.load<kKeys>(rows.k + on.begin());
  __syncthreads();
  // Of the levels between blocks: readers decay from the beginning of the block, what is written to
  // its end.
  {
    Sixteen f;
    on.block % 2 ? decays.from_begin(f) : decays.to_end(f);
    whole[on.block * kKeys + on.key] = on.block % 2 ? f[kGlaBlock - 1] : f[0] * decays.a[0];
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) f[t] *= on.block % 2 ? q.at(t) : k.at(t);
    put_tokens(x16, on.key, on.block * kGlaBlock, f);
  }
  {
    Tile A = {};
    put_same(near, on.lane, q, k);
    __syncwarp();
    add_same(A, near);
    __syncwarp();
    near_level<1>(A, near, on.lane, decays, q, k);
    near_level<2>(A, near, on.lane, decays, q, k);
    near_level<4>(A, near, on.lane, decays, q, k);
    near_level<8>(A, near, on.lane, decays, q, k);
    each([&](int t, int u, int row, int column) {
      partial[((on.group * 4 + on.block) * 16 + row) * 16 + column] = A[t][u];
    });
  }
  __syncthreads();
  {
    const GlaWhole<kKeys> of{whole};
    Sixteen f;
    on.block >= 2 ? decays.from_begin(f) : decays.to_end(f);
    const float by = of.to_middle(on.block, on.key);
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) f[t] *= by * (on.block >= 2 ? q.at(t) : k.at(t));
    put_tokens(x32, on.key, on.block * kGlaBlock, f);
    decays.from_begin(f);
    const float before = of.before(on.block, on.key);
#pragma unroll
    for (int t = 0; t < kGlaBlock; ++t) f[t] *= before * q.at(t);
    put_tokens(pq, on.key, on.block * kGlaBlock, f);
  }
  copy_wait<0>();
  __syncthreads();
  if (on.warp < 6) {
    const GlaCross of(on.warp);
    Tile A = {};
    cross_pairs<kKeys>(A, on.warp < 2 ? x16 : x32, of);
    put_pairs(pairs, A, of.row * kGlaBlock, of.column * kGlaBlock);
  } else {
    for (int i = threadIdx.x - 6 * 32; i < 512; i += Shape::kThreads - 6 * 32) {
      float2 sum = make_float2(0, 0);
#pragma unroll
      for (int n = 0; n < Shape::kGroups; ++n) {
        const float2 x = *reinterpret_cast<const float2*>(partial + n * 1024 + i * 2);
        sum.x += x.x, sum.y += x.y;
      }
      pairs.put(i / 8, i / 128 * 16 + i % 8 * 2, sum.x, sum.y);
      reinterpret_cast<float2*>(from.pairs + GlaChunk::item() * 1024)[i] = sum;
    }
  }
  // A warp has 16 tokens and some of the columns.
  constexpr int kN = 256 / Shape::kWarps / 8;  // tiles of 8
  const int row = on.warp % 4 * 16, column = on.warp / 4 * (kN * 8);
  const int64_t tiles = from.tiles;
  for (int tile = 0; tile < tiles; ++tile) {
    float o[kN][4] = {};
#pragma unroll
    for (int key = 0; key < kKeys; key += 16) {
      const auto a = pq.a_columns(row, key);
#pragma unroll
      for (int n = 0; n < kN; n += 2) multiply(o[n], o[n + 1], a, S.b_columns(key, column + 8 * n));
    }
    if (tile == 0) __syncthreads();
#pragma unroll
    for (int s = 0; s < kGlaTokens; s += 16) {
      if (s > row) continue;
      const auto a = pairs.a_rows(row, s);
#pragma unroll
      for (int n = 0; n < kN; n += 2) multiply(o[n], o[n + 1], a, v.b_columns(s, column + 8 * n));
    }
    __syncthreads();
    const float scale = float(p.scale);
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        v.put(row + on.g + 8 * half, column + 8 * n + 2 * on.c, scale * o[n][2 * half],
              scale * o[n][2 * half + 1]);
    if (tile + 1 < tiles) fetch_state<kKeys>(S, state + (tile + 1) * kKeys * kGlaColumns);
    __syncthreads();
    store_values<Shape::kThreads>(v, p.o, at, p.V, tile * kGlaColumns, wide.o);
    if (tile + 1 == tiles) break;
    __syncthreads();
    fetch_values<Shape::kThreads>(v, p.v, at, p.V, (tile + 1) * kGlaColumns, wide.v);
    copy_commit();
    copy_wait<0>();
    __syncthreads();
  }
}

}  // namespace

void diagonal_chunk_forward(const DiagonalForward& p, void* stream) {
  if (p.S * p.H == 0) return;
  const GlaStates states(p, static_cast<float*>(p.states));
  const auto on = static_cast<cudaStream_t>(stream);
  gla_states(p, states, on);
  with_gla_keys(p, [&](auto keys) {
    constexpr int kKeys = decltype(keys)::value;
    constexpr int kBytes = Layout<kKeys>::bytes;
    allow_shared(outputs<kKeys>, kBytes);
    if (gla_blocks(p) > 0)
      outputs<kKeys><<<gla_blocks(p), 4 * kKeys, kBytes, on>>>(p, states, GlaWide(p, p.o));
  });
  check_launch("diagonal");
}

}  // namespace lrnn::kernels::cuda
