#include "kernels/cuda/hopper_gradients.cuh"

// The gradients of chunk_gradients.cu on Hopper's warp-group products, one block of two warp groups
// for a chunk of a head:
//   group 0   X = dO e^T, which both groups need, and dQ = X K + dO S^T
//   group 1   E = dV e^T and dbeta; er = E K - dV S^T and src = e G^T + X^T Q + E^T K, which make
//   dK
// The inputs of the next chunk come in while the second halves of these sums and the stores run.
namespace lrnn::kernels::cuda {
namespace {

using namespace gradients;

// Row `half` of C tiles: column j times beta_j, `by` and the decay from j to micro-step i, up to
// column `last`, then zeros. `see` is shown every tile's two columns before.
template <class Chunk, class See>
__device__ __forceinline__ void mask(float (&x)[8][4], int half, const Chunk& z, int i, float by,
                                     int last, See&& see) {
  [[maybe_unused]] Decays::Row decay;  // times beta
  if constexpr (Chunk::kHasGate) decay = Decays::Row(z.decays(), i, by);
#pragma unroll
  for (int t = 0; t < 8; ++t) {
    const int j = t * 8 + threadIdx.x % 4 * 2;
    see(t, x[t][2 * half], x[t][2 * half + 1]);
    float2 factor;
    if constexpr (Chunk::kHasGate) {
      factor = decay.at(t);
    } else {
      const float2 beta = *reinterpret_cast<const float2*>(z.vector(kBeta) + j);
      factor = make_float2(by * beta.x, by * beta.y);
    }
    x[t][2 * half] = j <= last ? factor.x * x[t][2 * half] : 0.f;
    x[t][2 * half + 1] = j + 1 <= last ? factor.y * x[t][2 * half + 1] : 0.f;
  }
}

// A matrix [64,64] in C tiles to a swizzled tile (and its rest to the next), and as left operands.
template <bool kSplit>
__device__ __forceinline__ void share(const float (&x)[8][4], uint32_t (&a)[4][4],
                                      uint32_t (&a_rest)[4][4], unsigned char* tile, int i0) {
  as_operands<kSplit>(a, a_rest, x);
#pragma unroll
  for (int t = 0; t < 8; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      auto* const to = reinterpret_cast<uint32_t*>(tile + place_of(i0 + half * 8, t));
      *to = a[t / 2][t % 2 * 2 + half];
      if constexpr (kSplit) to[kTileBytes / 4] = a_rest[t / 2][t % 2 * 2 + half];
    }
  wgmma::publish();
}

// The gate's gradient. With F = X o Q K^T and H = E o K K^T, entry by entry,
//   dlog a_i = <G, S_end> + sum_{m >= i} (q_m.dq_m + k_m.er_m - k_m.src_m)
//   q.dq = q.dq' + rows of F,  k.er = k.er' + rows of H,  k.src = k.src' + columns of F and of H
// where ' is what comes from the states. What lies in rows and columns from i on alike cancels, so
// the same numbers must be in both; then all of it may be rounded, and be diagonals of products.
// Where operands are split the dots are those of the first line, in float32.
template <class Chunk> __device__ __forceinline__ void make_gate(const Chunk& z) {
  const Slopes& slopes = z.slopes();
  float after = 0;
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) after += slopes.ends[i];
  sum_up_gates(z.p, z.span, z.at, z.h, after, [&](int i) {
    const int r = z.queries.row(i);
    float sum = slopes.across[i] + (r >= 0 ? slopes.queries[r] : 0.f);
    if constexpr (!Chunk::kSplits) sum += slopes.within[i];
    return sum;
  });
}

// Rows and columns of F and H by the group that has x, the operand of its rows of X.
template <int KT, class Chunk>
__device__ __forceinline__ void sum_within(const Chunk& z, const uint32_t (&x)[4][4], int row0,
                                           float2 reads) {
  float qk[8][4], kq[8][4], kk[8][4];
  wgmma::fence();
  over_values<true>(qk, z.q, z.k, KT);
  over_values<true>(kq, z.k, z.q, KT);
  over_values<true>(kk, z.k, z.k, KT);
  wgmma::commit();
  wgmma::wait<0>();
  wgmma::hold(qk), wgmma::hold(kq), wgmma::hold(kk);
  Diagonal F_rows, rows, columns;
  uint32_t a[4], y[4], none[4];
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    as_operand<false>(y, none, qk[2 * n], qk[2 * n + 1]);
    F_rows.add(x[n], y);
    as_operand<false>(y, none, kq[2 * n], kq[2 * n + 1]);
    ldmatrix_transposed(a, columns_place(z.base + z.layout.X, row0, n));
    columns.add(a, y);
    as_operand<false>(y, none, kk[2 * n], kk[2 * n + 1]);
    ldmatrix_transposed(a, columns_place(z.base + z.layout.E, row0, n));
    columns.add(a, y);
    ldmatrix(a, rows_place(z.base + z.layout.E, row0, n));
    rows.add(a, y);
  }
  if (!Diagonal::here()) return;
  const int i = row0 + threadIdx.x % 32 / 4;
  Slopes& slopes = z.slopes();
  slopes.queries[i] = reads.x + F_rows.rows().x;
  slopes.queries[i + 8] = reads.y + F_rows.rows().y;
  slopes.within[i] = rows.rows().x - columns.rows().x;
  slopes.within[i + 8] = rows.rows().y - columns.rows().y;
}

// `meanwhile` runs while the first products do.
template <int KT, int VT, bool kSplit, bool kOne, bool kGated, class Next, class Meanwhile>
__device__ __forceinline__ void make_dq(const Chunk<KT, VT, kSplit, kOne, kGated>& z,
                                        const ChunkWork& w, Next&& next, Meanwhile&& meanwhile) {
  const DeltaProductBackward& p = z.p;
  const int lane = threadIdx.x % 32, row0 = threadIdx.x / 32 * 16, i0 = row0 + lane / 4;
  float X[8][4], dq[KT / 8][4], at_end = 0;
  if constexpr (!kOne) clear(X), clear(dq);
  [[maybe_unused]] bool first = true;
  z.each_tile(
      w,
      [&] {
        z.template values_values<false>(X, z.layout.d_o, z.layout.e);
        z.template values_state<false>(dq, z.layout.d_o, z.layout.S);
      },
      [&] {
        if constexpr (kGated) {
          if (first) z.decays().fill(z.vector(kGate), z.vector(kBeta));
          at_end += z.both_ends();
          if (first) meanwhile();
          first = false;
        }
        wgmma::wait<0>();
        wgmma::hold(X), wgmma::hold(dq);
      },
      next);

  uint32_t x[4][4], x_rest[4][4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = i0 + half * 8, last = i < z.queries.rows ? int(z.queries.at(i)) : -1;
    mask(X, half, z, max(last, 0), float(p.scale), last, [](int, float, float) {});
  }
  share<kSplit>(X, x, x_rest, z.memory + z.layout.X, i0);
  const float upper = z.vector(kRead)[i0], lower = z.vector(kRead)[i0 + 8];
  [[maybe_unused]] float2 reads;
  if constexpr (kGated && !kSplit) {
    Diagonal dots;
#pragma unroll
    for (int n = 0; n < KT / 16; ++n) {
      uint32_t a[4], none[4], q[4];
      as_operand<false>(a, none, dq[2 * n], dq[2 * n + 1]);
      ldmatrix(q, rows_place(z.q, row0, n));
      dots.add(a, q);
    }
    reads = make_float2(upper * dots.rows().x, lower * dots.rows().y);
  }
  meet();
  scale_rows(dq, upper, lower);
  wgmma::hold(dq);
  wgmma::fence();
  times_columns<false>(dq, x, z.k, kTileBytes);
  if constexpr (kSplit) times_columns<false>(dq, x_rest, z.k, kTileBytes);
  wgmma::commit();
  wgmma::wait<0>();
  wgmma::hold(dq);
  if constexpr (kSplit) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = i0 + half * 8;
      if constexpr (kGated) {
        const float slope = row_dot(dq, half, i, z.q_tiles());
        if (lane % 4 == 0) z.slopes().queries[i] = slope;
      }
      if (i < z.queries.rows)
        store_row(dq, half, static_cast<uint16_t*>(p.dq.data) + z.query_row(p.dq) + i * p.dq.token,
                  p.K);
    }
  } else {
    store_own(dq, z.room(),
              static_cast<uint16_t*>(p.dq.data) + z.query_row(p.dq) + row0 * p.dq.token, p.dq.token,
              z.queries.rows - row0, p.K);
    if constexpr (kGated) sum_within<KT>(z, x, row0, reads);
  }
  if constexpr (!kGated) return;
  at_end = sum_lanes<32>(at_end);
  if (lane == 0) z.slopes().ends[threadIdx.x / 32] = at_end;
}

template <int KT, int VT, bool kSplit, bool kOne, bool kGated, class Next>
__device__ __forceinline__ void make_dk(const Chunk<KT, VT, kSplit, kOne, kGated>& z,
                                        const ChunkWork& w, Next&& next) {
  const DeltaProductBackward& p = z.p;
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4, warp = threadIdx.x / 32 % 4;
  const int row0 = warp * 16, i0 = row0 + g;
  float E[8][4], er[KT / 8][4], src[KT / 8][4], at_end = 0;
  if constexpr (!kOne) clear(E), clear(er), clear(src);
  z.each_tile(
      w,
      [&] {
        z.template values_values<true>(E, z.layout.dv, z.layout.e);
        z.template values_state<true>(er, z.layout.dv, z.layout.S);
        z.template values_state<true>(src, z.layout.e, z.layout.G);
      },
      [&] {
        if constexpr (kGated) at_end += z.both_ends();
        wgmma::wait<0>();
        wgmma::hold(E), wgmma::hold(er), wgmma::hold(src);
      },
      next);

  uint32_t e[4][4], e_rest[4][4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = i0 + half * 8;
    mask(E, half, z, i, -1, i - 1, [&](int t, float x, float y) {
      // The diagonal lies in the warp's own two tiles.
      if (t == 2 * warp + half && (g & ~1) == 2 * c && i < z.at.count)
        static_cast<float*>(
            p.dbeta)[((z.span.b * p.T + z.span.t0) * p.N + z.at.first + i) * p.H + z.h] =
            (g & 1 ? y : x) / z.vector(kBeta)[i];
    });
  }
  share<kSplit>(E, e, e_rest, z.memory + z.layout.E, i0);
  scale_rows(er, -z.vector(kBefore)[i0], -z.vector(kBefore)[i0 + 8]);
  scale_rows(src, z.vector(kAfter)[i0] * z.vector(kBeta)[i0],
             z.vector(kAfter)[i0 + 8] * z.vector(kBeta)[i0 + 8]);
  if constexpr (kGated && kSplit) {
    const float sum = row_dot(src, 0, i0, z.k_tiles()) + row_dot(src, 1, i0 + 8, z.k_tiles());
    if (c == 0) at_end += sum;
  } else if constexpr (kGated) {
    Diagonal erased, written;
#pragma unroll
    for (int n = 0; n < KT / 16; ++n) {
      uint32_t a[4], none[4], k[4];
      ldmatrix(k, rows_place(z.k, row0, n));
      as_operand<false>(a, none, er[2 * n], er[2 * n + 1]);
      erased.add(a, k);
      as_operand<false>(a, none, src[2 * n], src[2 * n + 1]);
      written.add(a, k);
    }
    if (Diagonal::here()) {
      const float2 less = written.rows();
      z.slopes().across[i0] = erased.rows().x - less.x;
      z.slopes().across[i0 + 8] = erased.rows().y - less.y;
      at_end += less.x + less.y;
    }
  }
  wgmma::hold(er), wgmma::hold(src);
  meet();  // X and E are there
  wgmma::fence();
  times_columns<false>(er, e, z.k, kTileBytes);
  if constexpr (kSplit) times_columns<false>(er, e_rest, z.k, kTileBytes);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const uint32_t rows = j * 16 * 128;
#pragma unroll
    for (int part = 0; part < (kSplit ? 2 : 1); ++part) {
      const uint32_t at = z.base + part * kTileBytes + rows;
      wgmma::multiply<true, true, false>(src, wgmma::rows_as_k(at + z.layout.E, kTileBytes),
                                         wgmma::rows_as_k(z.k + rows, kTileBytes));
      wgmma::multiply<true, true, false>(src, wgmma::rows_as_k(at + z.layout.X, kTileBytes),
                                         wgmma::rows_as_k(z.q + rows, kTileBytes));
    }
  }
  wgmma::commit();
  wgmma::wait<0>();
  wgmma::hold(er), wgmma::hold(src);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = i0 + half * 8;
    if constexpr (kGated && kSplit) {
      const float slope = row_dot(er, src, half, i, z.k_tiles());
      if (c == 0) z.slopes().across[i] = slope;
    }
#pragma unroll
    for (int t = 0; t < KT / 8; ++t)
      er[t][2 * half] += src[t][2 * half], er[t][2 * half + 1] += src[t][2 * half + 1];
    if (kSplit && i < z.at.count)
      store_row(er, half, static_cast<uint16_t*>(p.dk.data) + z.step_row(p.dk) + i * p.dk.step,
                p.K);
  }
  if constexpr (!kSplit)
    store_own(er, z.room(), static_cast<uint16_t*>(p.dk.data) + z.step_row(p.dk) + row0 * p.dk.step,
              p.dk.step, z.at.count - row0, p.K);
  if constexpr (!kGated) return;
  at_end = sum_lanes<32>(at_end);
  if (lane == 0) z.slopes().ends[threadIdx.x / 32] = at_end;
}

// A block takes every gridDim-th chunk; while it finishes one, the next is on its way.
template <int KT, int VT, bool kSplit, bool kOne, bool kGated>
__global__ void __launch_bounds__(kThreads, 1)
    hopper_sums(DeltaProductBackward p, ChunkWork w, StateGradients dstates, unsigned items) {
  extern __shared__ __align__(1024) unsigned char memory[];
  using C = Chunk<KT, VT, kSplit, kOne, kGated>;
  // The same in all lanes, as the compiler can see.
  [[maybe_unused]] const int warp = __shfl_sync(0xffffffffu, int(threadIdx.x / 32), 0);
  const auto used = [&](unsigned item) {  // the next chunk that is not empty
    while (item < items && slot_of(p, item / unsigned(p.H), kChunk).count == 0) item += gridDim.x;
    return item;
  };
  wait_for_last();
  unsigned item = used(blockIdx.x), before = items;
  if (item >= items) return;
  if (!p.q.data) {  // no outputs: zeros in place of them
    for (int i = threadIdx.x; i < C::Places::vectors / 4; i += kThreads)
      reinterpret_cast<uint32_t*>(memory)[i] = 0;
    __syncthreads();
  }
  {
    const C z(p, dstates, memory, item, 0);
    if (threadIdx.x == 0) {
      barrier_init(z.barrier(), 1);
      wgmma::publish();  // to the copy engine
    }
    __syncthreads();
    z.fetch_keys(w);
    z.fetch_values(w, 0);
    copy_commit();
  }
  for (int buffer = 0; item < items; buffer ^= 1) {
    const C z(p, dstates, memory, item, buffer);
    const auto finish_before = [&] {
      if (warp == 0 && before < items) make_gate(C(p, dstates, memory, before, buffer ^ 1));
    };
    const unsigned here = item;
    item = used(item + gridDim.x);
    const auto next = [&] {
      if (item >= items) return;
      const C ahead(p, dstates, memory, item, buffer ^ 1);
      ahead.fetch_keys(w);
      ahead.fetch_values(w, 0);
    };
    threadIdx.x < kThreads / 2 ? make_dq(z, w, next, finish_before) : make_dk(z, w, next);
    before = here;
  }
  copy_wait<0>();
  if constexpr (!kGated) return;
  __syncthreads();
  if (warp == 0) make_gate(C(p, dstates, memory, before, 0));
}

template <int KT, int VT, bool kSplit, bool kOne, bool kGated>
void launch_sums(const DeltaProductBackward& p, const ChunkWork& w, const StateGradients& dstates,
                 cudaStream_t stream) {
  constexpr int bytes = Layout<KT, VT, kSplit, kGated>::bytes;
  auto* kernel = hopper_sums<KT, VT, kSplit, kOne, kGated>;
  allow_shared(kernel, bytes);
  int per_processor = 1;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, kThreads, bytes);
  const unsigned items = unsigned(chunk_slots(p, kChunk) * p.H);
  const unsigned most = unsigned((per_processor > 1 ? per_processor : 1) * processors());
  const unsigned blocks = most < items ? most : items;
  launch_next(kernel, dim3(blocks), kThreads, bytes, stream, p, w, dstates, items);
}

template <bool kGated>
void launch_sized(const DeltaProductBackward& p, const ChunkWork& w, const StateGradients& dstates,
                  cudaStream_t on) {
  if (p.K <= 64)
    w.split         ? launch_sums<64, 64, true, false, kGated>(p, w, dstates, on)
    : p.V == 64     ? launch_sums<64, 64, false, true, kGated>(p, w, dstates, on)
    : p.V % 128 > 0 ? launch_sums<64, 64, false, false, kGated>(p, w, dstates, on)
                    : launch_sums<64, 128, false, false, kGated>(p, w, dstates, on);
  else
    w.split         ? launch_sums<128, 64, true, false, kGated>(p, w, dstates, on)
    : p.V == 128    ? launch_sums<128, 128, false, true, kGated>(p, w, dstates, on)
    : p.V % 128 > 0 ? launch_sums<128, 64, false, false, kGated>(p, w, dstates, on)
                    : launch_sums<128, 128, false, false, kGated>(p, w, dstates, on);
}

}  // namespace

void hopper_gradients(const DeltaProductBackward& p, const ChunkWork& w,
                      const StateGradients& dstates, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  p.log_gate ? launch_sized<true>(p, w, dstates, on) : launch_sized<false>(p, w, dstates, on);
}

}  // namespace lrnn::kernels::cuda
