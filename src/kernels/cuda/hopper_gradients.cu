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

// Columns j, j+1 of a row of a C tile: times beta and `by` up to column `last`, then zeros.
__device__ __forceinline__ void mask(float& x, float& y, float2 beta, float2 by, int j, int last) {
  x = j <= last ? by.x * beta.x * x : 0.f;
  y = j + 1 <= last ? by.y * beta.y * y : 0.f;
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

// The gate's gradient from slopes: 64 of micro-steps, 64 of queries, then one end sum per warp.
template <int KT, int VT, bool kSplit, bool kOne>
__device__ __forceinline__ void make_gate(const Chunk<KT, VT, kSplit, kOne>& z) {
  const float* const slopes = z.slopes();
  float after = 0;
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) after += slopes[2 * kChunk + i];
  sum_up_gates(z.p, z.span, z.at, z.h, after, [&](int i) {
    const int r = z.queries.row(i);
    return slopes[i] + (r >= 0 ? slopes[kChunk + r] : 0.f);
  });
}

// `meanwhile` runs on the first warp while the first products do.
template <int KT, int VT, bool kSplit, bool kOne, class Next, class Meanwhile>
__device__ __forceinline__ void make_dq(const Chunk<KT, VT, kSplit, kOne>& z, const ChunkWork& w,
                                        Next&& next, Meanwhile&& meanwhile) {
  const DeltaProductBackward& p = z.p;
  const int lane = threadIdx.x % 32, c = lane % 4, i0 = threadIdx.x / 32 * 16 + lane / 4;
  float X[8][4], dq[KT / 8][4], at_end = 0;
  if constexpr (!kOne) clear(X), clear(dq);
  bool first = true;
  z.each_tile(
      w,
      [&] {
        z.template values_values<false>(X, z.layout.d_o, z.layout.e);
        z.template values_state<false>(dq, z.layout.d_o, z.layout.S);
      },
      [&] {
        if (p.dlog_gate) at_end += z.both_ends();
        if (p.dlog_gate && first && threadIdx.x < 32) meanwhile();
        first = false;
        wgmma::wait<0>();
        wgmma::hold(X), wgmma::hold(dq);
      },
      next);

  uint32_t x[4][4], x_rest[4][4];
  const float by = float(p.scale);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = i0 + half * 8, last = i < z.queries.rows ? int(z.queries.at(i)) : -1;
    Decays::Row decay;
    if (p.log_gate) decay = Decays::Row(z.decays(), max(last, 0), by);
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      const int j = t * 8 + 2 * c;
      const float2 beta = *reinterpret_cast<const float2*>(z.vector(kBeta) + j);
      mask(X[t][2 * half], X[t][2 * half + 1], beta, p.log_gate ? decay.at(t) : make_float2(by, by),
           j, last);
    }
  }
  share<kSplit>(X, x, x_rest, z.memory + z.layout.X, i0);
  meet();
  scale_rows(dq, z.vector(kRead)[i0], z.vector(kRead)[i0 + 8]);
  wgmma::hold(dq);
  wgmma::fence();
  times_columns<false>(dq, x, z.k, kTileBytes);
  if constexpr (kSplit) times_columns<false>(dq, x_rest, z.k, kTileBytes);
  wgmma::commit();
  wgmma::wait<0>();
  wgmma::hold(dq);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = i0 + half * 8;
    if (p.dlog_gate) {
      const float slope = row_dot(dq, half, i, z.q_tiles());
      if (c == 0) z.slopes()[kChunk + i] = slope;
    }
    if (kSplit && i < z.queries.rows)
      store_row(dq, half, static_cast<uint16_t*>(p.dq.data) + z.query_row(p.dq) + i * p.dq.token,
                p.K);
  }
  if constexpr (!kSplit) {
    const int first = threadIdx.x / 32 * 16;
    store_own(dq, z.room(),
              static_cast<uint16_t*>(p.dq.data) + z.query_row(p.dq) + first * p.dq.token,
              p.dq.token, z.queries.rows - first, p.K);
  }
  if (!p.dlog_gate) return;
  at_end = sum_lanes<32>(at_end);
  if (lane == 0) z.slopes()[2 * kChunk + threadIdx.x / 32] = at_end;
}

template <int KT, int VT, bool kSplit, bool kOne, class Next>
__device__ __forceinline__ void make_dk(const Chunk<KT, VT, kSplit, kOne>& z, const ChunkWork& w,
                                        Next&& next) {
  const DeltaProductBackward& p = z.p;
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4, warp = threadIdx.x / 32 % 4;
  const int i0 = warp * 16 + g;
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
        if (p.dlog_gate) at_end += z.both_ends();
        wgmma::wait<0>();
        wgmma::hold(E), wgmma::hold(er), wgmma::hold(src);
      },
      next);

  uint32_t e[4][4], e_rest[4][4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = i0 + half * 8;
    Decays::Row decay;
    if (p.log_gate) decay = Decays::Row(z.decays(), i, -1);
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      const int j = t * 8 + 2 * c;
      const float2 beta = *reinterpret_cast<const float2*>(z.vector(kBeta) + j);
      // The diagonal lies in the warp's own two tiles.
      if (t == 2 * warp + half && (g & ~1) == 2 * c && i < z.at.count)
        static_cast<float*>(
            p.dbeta)[((z.span.b * p.T + z.span.t0) * p.N + z.at.first + i) * p.H + z.h] =
            g & 1 ? E[t][2 * half + 1] / beta.y : E[t][2 * half] / beta.x;
      mask(E[t][2 * half], E[t][2 * half + 1], beta, p.log_gate ? decay.at(t) : make_float2(-1, -1),
           j, i - 1);
    }
  }
  share<kSplit>(E, e, e_rest, z.memory + z.layout.E, i0);
  scale_rows(er, -z.vector(kBefore)[i0], -z.vector(kBefore)[i0 + 8]);
  scale_rows(src, z.vector(kAfter)[i0] * z.vector(kBeta)[i0],
             z.vector(kAfter)[i0 + 8] * z.vector(kBeta)[i0 + 8]);
  if (p.dlog_gate) {
    const float sum = row_dot(src, 0, i0, z.k_tiles()) + row_dot(src, 1, i0 + 8, z.k_tiles());
    if (c == 0) at_end += sum;
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
    if (p.dlog_gate) {
      const float slope = row_dot(er, src, half, i, z.k_tiles());
      if (c == 0) z.slopes()[i] = slope;
    }
#pragma unroll
    for (int t = 0; t < KT / 8; ++t)
      er[t][2 * half] += src[t][2 * half], er[t][2 * half + 1] += src[t][2 * half + 1];
    if (kSplit && i < z.at.count)
      store_row(er, half, static_cast<uint16_t*>(p.dk.data) + z.step_row(p.dk) + i * p.dk.step,
                p.K);
  }
  if constexpr (!kSplit)
    store_own(er, z.room(),
              static_cast<uint16_t*>(p.dk.data) + z.step_row(p.dk) + warp * 16 * p.dk.step,
              p.dk.step, z.at.count - warp * 16, p.K);
  if (!p.dlog_gate) return;
  at_end = sum_lanes<32>(at_end);
  if (lane == 0) z.slopes()[2 * kChunk + threadIdx.x / 32] = at_end;
}

// A block takes every gridDim-th chunk; while it finishes one, the next is on its way.
template <int KT, int VT, bool kSplit, bool kOne>
__global__ void __launch_bounds__(kThreads, 1)
    hopper_sums(DeltaProductBackward p, ChunkWork w, StateGradients dstates, unsigned items) {
  extern __shared__ __align__(1024) unsigned char memory[];
  using C = Chunk<KT, VT, kSplit, kOne>;
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
      if (before < items) make_gate(C(p, dstates, memory, before, buffer ^ 1));
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
  if (!p.dlog_gate) return;
  __syncthreads();
  if (threadIdx.x < 32) make_gate(C(p, dstates, memory, before, 0));
}

template <int KT, int VT, bool kSplit, bool kOne>
void launch_sums(const DeltaProductBackward& p, const ChunkWork& w, const StateGradients& dstates,
                 cudaStream_t stream) {
  const int bytes = Layout<KT, VT, kSplit>(p.log_gate).bytes;
  auto* kernel = hopper_sums<KT, VT, kSplit, kOne>;
  allow_shared(kernel, bytes);
  int per_processor = 1;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, kThreads, bytes);
  const unsigned items = unsigned(chunk_slots(p, kChunk) * p.H);
  const unsigned most = unsigned((per_processor > 1 ? per_processor : 1) * processors());
  const unsigned blocks = most < items ? most : items;
  launch_next(kernel, dim3(blocks), kThreads, bytes, stream, p, w, dstates, items);
}

}  // namespace

void hopper_gradients(const DeltaProductBackward& p, const ChunkWork& w,
                      const StateGradients& dstates, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.K <= 64)
    w.split         ? launch_sums<64, 64, true, false>(p, w, dstates, on)
    : p.V == 64     ? launch_sums<64, 64, false, true>(p, w, dstates, on)
    : p.V % 128 > 0 ? launch_sums<64, 64, false, false>(p, w, dstates, on)
                    : launch_sums<64, 128, false, false>(p, w, dstates, on);
  else
    w.split         ? launch_sums<128, 64, true, false>(p, w, dstates, on)
    : p.V == 128    ? launch_sums<128, 128, false, true>(p, w, dstates, on)
    : p.V % 128 > 0 ? launch_sums<128, 64, false, false>(p, w, dstates, on)
                    : launch_sums<128, 128, false, false>(p, w, dstates, on);
}

}  // namespace lrnn::kernels::cuda
