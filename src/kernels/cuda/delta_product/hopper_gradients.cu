#include "kernels/cuda/delta_product/hopper_gradients.cuh"

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
// column `last`, then zeros. `see` is shown every tile's two columns before: here their indices are
// constants, as those of registers must be.
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

// A matrix [64,64] in C tiles to a swizzled tile (and its lo to the next), and as left operands.
template <int kParts>
__device__ __forceinline__ void share(const float (&x)[8][4], Fragment<kParts> (&a)[4],
                                      unsigned char* tile, int i0) {
  as_fragments(a, x);
#pragma unroll
  for (int t = 0; t < 8; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      auto* const to = reinterpret_cast<uint32_t*>(tile + place_of(i0 + half * 8, t));
#pragma unroll
      for (int i = 0; i < kParts; ++i) to[i * kTileBytes / 4] = a[t / 2].part[i][t % 2 * 2 + half];
    }
  wgmma::publish();
}

// The gate's gradient. With F = X o Q K^T and H = E o K K^T, entry by entry,
//   dlog a_i = <G, S_end> + sum_{m >= i} (q_m.dq_m + k_m.er_m - k_m.src_m)
//   q.dq = q.dq' + rows of F,  k.er = k.er' + rows of H,  k.src = k.src' + columns of F and of H
// where ' is what comes from the states. What lies in rows and columns from i on alike cancels, so
// the same numbers must be in both; then all of it may be rounded, and be diagonals of products.
// Where operands are split the dots are those of the first line, in float32.
template <bool kSplit>
__device__ __forceinline__ void make_gate(const DeltaProductBackward& p, const Slopes& slopes) {
  const float2 ends = reinterpret_cast<const float2*>(slopes.ends)[threadIdx.x % 32];
  sum_up_gates(p, slopes.span, slopes.at, slopes.h, sum_lanes<32>(ends.x + ends.y), [&](int i) {
    const float sum = slopes.across[i] + slopes.queries[i];
    return kSplit ? sum : sum + slopes.within[i];
  });
}
// A warp's share of <G, S>: the lanes that have any.
template <class Chunk> __device__ __forceinline__ void put_end(const Chunk& z, float share) {
  const int lane = threadIdx.x % 32;
  if (Diagonal::here()) z.slopes().ends[threadIdx.x / 32 * 8 + lane / 4] = share;
}
template <class Chunk>
__device__ __forceinline__ void put_query(const Chunk& z, int r, float slope) {
  if (r < z.queries.rows) z.slopes().queries[z.queries.at(r)] = slope;
}

// Products of queries and keys for F and H, by the group that has X: two while it makes that, the
// third when that has left its registers.
struct Within {
  float qk[8][4], kq[8][4], kk[8][4];

  template <int KT, class Chunk> __device__ __forceinline__ void start(const Chunk& z) {
    wgmma::fence();
    rows_by_rows<true, KT>(qk, z.q, z.k);
    rows_by_rows<true, KT>(kk, z.k, z.k);
    wgmma::commit();
  }
  template <int KT, class Chunk> __device__ __forceinline__ void go_on(const Chunk& z) {
    rows_by_rows<true, KT>(kq, z.k, z.q);
    wgmma::commit();
  }
  // Rows and columns of F and H: x is the operand of this warp's rows of X, `reads` their q.dq'.
  template <class Chunk>
  __device__ __forceinline__ void sum(const Chunk& z, const Fragment<1> (&x)[4], int row0,
                                      float2 reads) {
    wgmma::hold(qk), wgmma::hold(kq), wgmma::hold(kk);
    Diagonal F_rows, rows, columns;
    uint32_t a[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      F_rows.add(x[n].part[0], as_fragment<1>(qk[2 * n], qk[2 * n + 1]).part[0]);
      const auto y = as_fragment<1>(kq[2 * n], kq[2 * n + 1]);
      ldmatrix_transposed(a, columns_place(z.base + z.layout.X, row0, n));
      columns.add(a, y.part[0]);
      const auto k = as_fragment<1>(kk[2 * n], kk[2 * n + 1]);
      ldmatrix_transposed(a, columns_place(z.base + z.layout.E, row0, n));
      columns.add(a, k.part[0]);
      ldmatrix(a, rows_place(z.base + z.layout.E, row0, n));
      rows.add(a, k.part[0]);
    }
    if (!Diagonal::here()) return;
    const int i = row0 + threadIdx.x % 32 / 4;
    put_query(z, i, reads.x + F_rows.rows().x);
    put_query(z, i + 8, reads.y + F_rows.rows().y);
    z.slopes().within[i] = rows.rows().x - columns.rows().x;
    z.slopes().within[i + 8] = rows.rows().y - columns.rows().y;
  }
};

// `gate_before`: this warp makes the gate's gradient of the block's chunk before while products
// run.
template <int KT, int VT, bool kSplit, bool kOne, bool kGated, class Next>
__device__ __forceinline__ void make_dq(const Chunk<KT, VT, kSplit, kOne, kGated>& z,
                                        const ChunkWork& w, Next&& next,
                                        [[maybe_unused]] bool gate_before) {
  const DeltaProductBackward& p = z.p;
  const int lane = threadIdx.x % 32, row0 = threadIdx.x / 32 * 16, i0 = row0 + lane / 4;
  float X[8][4], dq[KT / 8][4];
  [[maybe_unused]] float at_end = 0;
  [[maybe_unused]] bool first = true;
  if constexpr (!kOne) clear(X), clear(dq);
  z.each_tile(
      w,
      [&] {
        z.template values_values<false>(X, z.layout.d_o, z.layout.e);
        z.template values_state<false>(dq, z.layout.d_o, z.layout.S);
      },
      [&] {
        if constexpr (kGated) {
          if (first) {
            z.decays().fill(z.vector(kGate), z.vector(kBeta));
            if (threadIdx.x < kChunk) z.slopes().queries[threadIdx.x] = 0;
            if (threadIdx.x == 0)
              z.slopes().span = z.span, z.slopes().at = z.at, z.slopes().h = z.h;
          }
          first = false;
          at_end += z.both_ends();
        }
        wgmma::wait<0>();
        wgmma::hold(X), wgmma::hold(dq);
      },
      next);

  if constexpr (kGated) put_end(z, at_end);
  Fragment<kSplit ? 2 : 1> x[4];
  const float upper = z.vector(kRead)[i0], lower = z.vector(kRead)[i0 + 8];
  [[maybe_unused]] float2 reads;
  [[maybe_unused]] Within within;
  if constexpr (kGated && !kSplit) {
    Diagonal dots;
#pragma unroll
    for (int n = 0; n < KT / 16; ++n) {
      uint32_t q[4];
      ldmatrix(q, rows_place(z.q, row0, n));
      dots.add(as_fragment<1>(dq[2 * n], dq[2 * n + 1]).part[0], q);
    }
    reads = make_float2(upper * dots.rows().x, lower * dots.rows().y);
    scale_rows(dq, upper, lower);
    within.start<KT>(z);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = i0 + half * 8, last = i < z.queries.rows ? int(z.queries.at(i)) : -1;
    mask(X, half, z, max(last, 0), float(p.scale), last, [](int, float, float) {});
  }
  share(X, x, z.memory + z.layout.X, i0);
  meet();
  if constexpr (!kGated || kSplit) scale_rows(dq, upper, lower);
  wgmma::hold(dq);
  wgmma::fence();
  if constexpr (kGated && !kSplit) within.template go_on<KT>(z);
  times_columns<false>(dq, x, z.k, kTileBytes);
  wgmma::commit();
  if (kGated && gate_before) make_gate<kSplit>(p, z.slopes(z.buffer ^ 1));
  if constexpr (kGated && !kSplit) {
    wgmma::wait<1>();
    within.sum(z, x, row0, reads);
  }
  wgmma::wait<0>();
  wgmma::hold(dq);
  if constexpr (kSplit) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = i0 + half * 8;
      if constexpr (kGated) {
        const float slope = row_dot(dq, half, i, z.q_tiles());
        if (lane % 4 == 0) put_query(z, i, slope);
      }
      if (i < z.queries.rows)
        store_row(dq, half, static_cast<uint16_t*>(p.dq.data) + z.query_row(p.dq) + i * p.dq.token,
                  p.K);
    }
  } else {
    store_own(dq, z.scratch(),
              static_cast<uint16_t*>(p.dq.data) + z.query_row(p.dq) + row0 * p.dq.token, p.dq.token,
              z.queries.rows - row0, p.K);
  }
}

template <int KT, int VT, bool kSplit, bool kOne, bool kGated, class Next>
__device__ __forceinline__ void make_dk(const Chunk<KT, VT, kSplit, kOne, kGated>& z,
                                        const ChunkWork& w, Next&& next) {
  const DeltaProductBackward& p = z.p;
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4, warp = threadIdx.x / 32 % 4;
  const int row0 = warp * 16, i0 = row0 + g;
  float E[8][4], er[KT / 8][4], src[KT / 8][4];
  [[maybe_unused]] float at_end = 0;
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

  Fragment<kSplit ? 2 : 1> e[4];
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
  share(E, e, z.memory + z.layout.E, i0);
  scale_rows(er, -z.vector(kBefore)[i0], -z.vector(kBefore)[i0 + 8]);
  scale_rows(src, z.vector(kAfter)[i0] * z.vector(kBeta)[i0],
             z.vector(kAfter)[i0 + 8] * z.vector(kBeta)[i0 + 8]);
  if constexpr (kGated && kSplit) {
    const float sum = row_dot(src, 0, i0, z.k_tiles()) + row_dot(src, 1, i0 + 8, z.k_tiles());
    put_end(z, at_end + sum);
  } else if constexpr (kGated) {
    Diagonal erased, written;
#pragma unroll
    for (int n = 0; n < KT / 16; ++n) {
      uint32_t k[4];
      ldmatrix(k, rows_place(z.k, row0, n));
      erased.add(as_fragment<1>(er[2 * n], er[2 * n + 1]).part[0], k);
      written.add(as_fragment<1>(src[2 * n], src[2 * n + 1]).part[0], k);
    }
    const float2 less = written.rows();
    if (Diagonal::here()) {
      z.slopes().across[i0] = erased.rows().x - less.x;
      z.slopes().across[i0 + 8] = erased.rows().y - less.y;
    }
    put_end(z, at_end + less.x + less.y);
  }
  wgmma::hold(er), wgmma::hold(src);
  meet();  // X and E are there
  wgmma::fence();
  times_columns<false>(er, e, z.k, kTileBytes);
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
    store_own(er, z.scratch(),
              static_cast<uint16_t*>(p.dk.data) + z.step_row(p.dk) + row0 * p.dk.step, p.dk.step,
              z.at.count - row0, p.K);
}

// A block takes every gridDim-th chunk; while it finishes one, the next is on its way.
template <int KT, int VT, bool kSplit, bool kOne, bool kGated>
__global__ void __launch_bounds__(kThreads, 1)
    hopper_sums(DeltaProductBackward p, ChunkWork w, StateGradients dstates, unsigned items) {
  extern __shared__ __align__(1024) unsigned char memory[];
  using C = Chunk<KT, VT, kSplit, kOne, kGated>;
  const auto used = [&](unsigned item) {  // the next chunk that is not empty
    while (item < items && slot_of(p, item / unsigned(p.H), kChunk).count == 0) item += gridDim.x;
    return item;
  };
  pdl_wait();
  unsigned item = used(blockIdx.x);
  if (item >= items) return;
  if (!p.q.data) {  // no outputs: zeros in place of them
    for (int i = threadIdx.x; i < C::Places::vectors / 4; i += kThreads)
      reinterpret_cast<uint32_t*>(memory)[i] = 0;
    __syncthreads();
  }
  {
    const C z{p, dstates, memory, item, 0};
    if (threadIdx.x == 0) {
      barrier_init(z.barrier(), 1);
      wgmma::publish();  // to the copy engine
    }
    __syncthreads();
    z.fetch_keys(w);
    z.fetch_values(w, 0);
    copy_commit();
  }
  // Whether this is the first warp: as the compiler can see, the same in all its lanes.
  [[maybe_unused]] const bool leads = __shfl_sync(0xffffffffu, int(threadIdx.x / 32), 0) == 0;
  int buffer = 0;
  for (bool any = false; item < items; buffer ^= 1, any = true) {
    const C z{p, dstates, memory, item, buffer};
    item = used(item + gridDim.x);
    const auto next = [&] {
      if (item >= items) return;
      const C ahead{p, dstates, memory, item, buffer ^ 1};
      ahead.fetch_keys(w);
      ahead.fetch_values(w, 0);
    };
    threadIdx.x < kThreads / 2 ? make_dq(z, w, next, leads && any) : make_dk(z, w, next);
  }
  copy_wait<0>();
  if constexpr (!kGated) return;
  __syncthreads();
  if (leads)
    make_gate<kSplit>(p, reinterpret_cast<const Slopes*>(memory + C::Places::slopes)[buffer ^ 1]);
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
  const unsigned most = unsigned((per_processor > 1 ? per_processor : 1) * chip().processors);
  const unsigned blocks = most < items ? most : items;
  pdl_launch(kernel, dim3(blocks), kThreads, bytes, stream, p, w, dstates, items);
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
