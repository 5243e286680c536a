#include "kernels/cuda/delta_product/hopper.cuh"

// The backward sweep of chunk_reverse.cu on Hopper's warp-group products. With kMap it only follows
// the gradient of the state through a segment, from zero at its end; the last one's is given. Where
// it is not kept, the fetching group makes P from the keys and queries that it fetched.
namespace lrnn::kernels::cuda {
namespace {

template <int KT, int kRows, bool kSplit, bool kMakeP> struct Layout {  // of one stage, in bytes
  static constexpr int k = 0, q = k + KT / 64 * kTileBytes, T = q + KT / 64 * kRows * 128,
                       T_lo = T + kTileBytes, P = T_lo + (kSplit ? 2 * kTileBytes : 0),
                       P_lo = P + (kMakeP ? kTileBytes : kRows * 128),
                       d_o = P_lo + (kSplit ? kRows * 128 : 0);
  static __host__ __device__ int vectors(int columns) { return d_o + kRows * row_bytes(columns); }
  static __host__ __device__ int bytes(int columns) {
    return (vectors(columns) + kVectorCount * kChunk * 4 + 1023) / 1024 * 1024;
  }
  // Behind the two stages, per warp group: a tile of dV, and scratch for the gradient of the state,
  // which in split mode takes the place of that tile and of the one for its lo.
  static constexpr int kResult = kChunk * row_bytes(64), kState = 16 * KT * 2;
  static constexpr int kState0 = kSplit ? 0 : kResult;
  static constexpr int kOut =
      kState0 + 4 * kState > 2 * kResult ? kState0 + 4 * kState : 2 * kResult;
  static __host__ __device__ int all(int columns) {
    return 2 * bytes(columns) + columns / 64 * kOut + Pipeline::kBytes;
  }
};

// P^T = scale K Q^T where the query comes after the key, by a warp group: rows of a swizzled tile.
template <int KT, int kRows>
__device__ __forceinline__ void make_P(uint32_t to, uint32_t k, uint32_t q, const Queries& queries,
                                       float scale) {
  float x[kRows / 8][4];
  meet_group();  // all has come
  wgmma::fence();
#pragma unroll
  for (int step = 0; step < KT / 16; ++step) {
    const uint64_t a = wgmma::rows_as_n(k + step / 4 * kTileBytes) + step % 4 * 2,
                   b = wgmma::rows_as_n(q + step / 4 * kRows * 128) + step % 4 * 2;
    if (step == 0)
      wgmma::multiply<false, false, true>(x, a, b);
    else
      wgmma::multiply<false, false, false>(x, a, b);
  }
  wgmma::commit();
  wgmma::wait<0>();
  wgmma::hold(x);
  const int lane = threadIdx.x % 32, row0 = threadIdx.x / 32 % 4 * 16, i = row0 + lane / 4;
#pragma unroll
  for (int t = 0; t < kRows / 8; ++t)
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const int r = t * 8 + lane % 4 * 2 + u;
      const int last = r < queries.rows ? queries.place + r * queries.every : -1;
      x[t][u] = i <= last ? scale * x[t][u] : 0.f;
      x[t][2 + u] = i + 8 <= last ? scale * x[t][2 + u] : 0.f;
    }
  const uint32_t at = to + (row0 + lane % 16) * 128;
#pragma unroll
  for (int n = 0; n < kRows / 16; ++n) {
    uint32_t r[4], none[4];
    as_operand<false>(r, none, x[2 * n], x[2 * n + 1]);
    stmatrix(at + (((2 * n + lane / 16) ^ lane) & 7) * 16, r);
  }
}

template <int KT, int kRows, bool kSplit, bool kGate, bool kMap>
__global__ void __launch_bounds__(kMostThreads, 1)
    hopper_back(DeltaProductBackward p, ChunkWork w, Segments segments, StateGradients dstates,
                int columns) {
  extern __shared__ __align__(1024) unsigned char memory[];
  constexpr bool kMakeP = makes_P(kSplit, kGate);
  using L = Layout<KT, kRows, kSplit, kMakeP>;
  constexpr int kTiles = KT / 8, kSteps = KT / 16, kReads = kRows / 16;
  pdl_trigger();
  const Stretch stretch(p, segments);
  if (kMap && stretch.segment == 0) return;
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4, own = threadIdx.x / 32 * 16;
  const int64_t s = stretch.s, h = stretch.h;
  const int64_t v_tile = int64_t(blockIdx.y) * columns, v0 = v_tile + own;
  const Span span = span_of(p, s);
  const int64_t steps = span.length * p.N, head = s * p.H + h, slot0 = first_slot(p, s, kChunk);
  const int groups = columns / 64, stage_bytes = L::bytes(columns);
  if (!p.q.data) {  // no outputs: their gradient is zero, and so are the products with it
    for (int i = threadIdx.x; i < 2 * stage_bytes / 4; i += blockDim.x)
      reinterpret_cast<uint32_t*>(memory)[i] = 0;
    wgmma::publish();
  }
  const Pipeline pipeline(shared_address(memory) + L::all(columns) - Pipeline::kBytes, groups);
  pdl_wait();

  if (int(threadIdx.x) >= groups * 128) {
    give_registers<kSplit, kMakeP>();
    const int rank = threadIdx.x - groups * 128;
    const uint16_t* const k_rows =
        static_cast<const uint16_t*>(p.k.data) + row_at(p.k, span.b, span.t0, 0, h);
    const uint16_t* const q_rows = static_cast<const uint16_t*>(p.q.data) +
                                   (p.q.data ? row_at(p.q, span.b, span.t0, 0, h) : 0);
    const uint16_t* const do_rows = static_cast<const uint16_t*>(p.d_o.data) +
                                    (p.q.data ? row_at(p.d_o, span.b, span.t0, 0, h) + v_tile : 0);
    for (int chunk = stretch.end - 1; chunk >= stretch.begin; --chunk) {
      const int n = stretch.end - 1 - chunk;
      const int64_t first = int64_t(chunk) * kChunk, at = (slot0 + chunk) * p.H + h;
      const int count = int(min(int64_t(kChunk), steps - first));
      const uint32_t stage = shared_address(memory) + n % 2 * stage_bytes;
      const Queries queries(p, first, count);
      // What P is made of comes first, where it is made.
      const auto bring_pieces = [&] {
        if (rank == 0)
          bring_chunk<L, kRows, kSplit>(pipeline, n, stage, L::vectors(columns), w, at,
                                        !kMakeP && p.q.data);
      };
      pipeline.wait_free(n);
      if constexpr (!kMakeP) bring_pieces();
      fetch_tiles<KT, kChunk, kFetchers>(rank, stage + L::k, k_rows + first * p.k.step, p.k.step,
                                         count, int(p.K));
      if (p.q.data)
        fetch_tiles<KT, kRows, kFetchers>(rank, stage + L::q, q_rows + queries.token * p.q.token,
                                          p.q.token, queries.rows, int(p.K));
      copy_commit();
      if constexpr (kMakeP) bring_pieces();
      if (p.q.data) {
        const uint16_t* const d_o = do_rows + queries.token * p.d_o.token;
        if (columns == 128)
          fetch_rows_by<128, kRows, kFetchers>(rank, stage + L::d_o, d_o, p.d_o.token,
                                               queries.rows);
        else
          fetch_rows_by<64, kRows, kFetchers>(rank, stage + L::d_o, d_o, p.d_o.token, queries.rows);
      }
      copy_commit();
      if (kMakeP && p.q.data) {  // while the gradient of o comes
        copy_wait<1>();
        wgmma::publish();
        make_P<KT, kRows>(stage + L::P, stage + L::k, stage + L::q, queries, float(p.scale));
      }
      copy_wait<0>();
      wgmma::publish();
      pipeline.filled(n);
    }
    return;
  }
  take_registers<kSplit, kMakeP>();

  const uint32_t out = shared_address(memory) + 2 * stage_bytes + threadIdx.x / 128 * L::kOut;
  const uint32_t state_scratch = out + L::kState0 + threadIdx.x / 32 % 4 * L::kState;

  float G[kTiles][4];
  const int64_t matrix = p.K * p.V, segment = stretch.at(p, segments);
  const float* const final = static_cast<const float*>(p.d_final_state);
  read_state(G,
             stretch.segment < segments.count - 1
                 ? (kMap ? nullptr : segments.between + (segment + 1) * matrix)
             : final ? final + head * matrix
                     : nullptr,
             p.K, p.V, v0 + g);
  for (int chunk = stretch.end - 1; chunk >= stretch.begin; --chunk) {
    const int turn = stretch.end - 1 - chunk;
    pipeline.wait_filled(turn);
    const unsigned char* const here = memory + turn % 2 * stage_bytes;
    const uint32_t stage = shared_address(here);
    const float* const vectors = reinterpret_cast<const float*>(here + L::vectors(columns));
    const int64_t first = int64_t(chunk) * kChunk;
    const int count = int(min(int64_t(kChunk), steps - first));

    // dD = diag(r) K G' + P^T dO, and G += (scale a Q)^T dO.
    float dD[8][4];
    uint32_t a[kSteps][4], a_lo[kSteps][4], o[kReads][4], read[kReads][4], read_lo[kReads][4];
    as_operands<kSplit>(a, a_lo, G);
    const uint32_t do_at = stage + L::d_o + lane_direct(row_bytes(columns)) + own * 2;
#pragma unroll
    for (int k = 0; k < kReads; ++k) {
      ldmatrix_transposed(o[k], do_at + k * 16 * row_bytes(columns));
      const float* const by = vectors + kRead * kChunk + k * 16 + 2 * c;
      const float2 x = *reinterpret_cast<const float2*>(by),
                   y = *reinterpret_cast<const float2*>(by + 8);
      const float left[4] = {x.x * low_of(o[k][0]), x.y * high_of(o[k][0]), x.x * low_of(o[k][1]),
                             x.y * high_of(o[k][1])};
      const float right[4] = {y.x * low_of(o[k][2]), y.y * high_of(o[k][2]), y.x * low_of(o[k][3]),
                              y.y * high_of(o[k][3])};
      as_operand<kSplit>(read[k], read_lo[k], left, right);
    }
    if constexpr (kGate) {
      const float decay = vectors[kBefore * kChunk + kChunk - 1];
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int u = 0; u < 4; ++u) G[t][u] *= decay;
    }
    const auto send_gradients = [&] {
      if constexpr (kMap) return;
      const int64_t item = (slot0 + chunk) * p.H + h;
      if constexpr (kSplit) {
        const int64_t to = item * p.V * KT + v0 * 64;
        send_wait<0>();
        meet_group();
        send_state(a, dstates.chunks + to, p.V, state_scratch);
        send_commit();
        send_wait<0>();
        __syncwarp();
        send_state(a_lo, w.dstates_lo + to, p.V, state_scratch);
      } else {
        send_wait<1>();
        __syncwarp();
        put_state(a, state_scratch);
        const GradientRows<KT> rows(p, dstates, span, first, count, h, item, head);
        if (lane < 16) {
          constexpr int kEach = 16 * 64 / KT;  // rows with 64 keys
          const int row = lane / kEach * int(p.V * 64 / KT) + int(v0) * 64 / KT + lane % kEach;
          send(rows.at(row), state_scratch + lane * KT * 2, KT * 2);
        }
      }
      send_commit();
    };
    // The second sum of dD follows the first in the same registers. Split operands need theirs back
    // before, and a gate scales the first alone.
    constexpr bool kPause = kSplit || kGate;
    wgmma::fence();
    times_rows<true, kTileBytes>(dD, a, stage + L::k);
    if constexpr (kSplit) times_rows<false, kTileBytes>(dD, a_lo, stage + L::k);
    if constexpr (kPause) {
      wgmma::commit();
      send_gradients();
      wgmma::wait<0>();
      wgmma::hold(dD);
      if constexpr (kGate) scale_columns(dD, vectors + kAfter * kChunk);
      wgmma::fence();
    }
    if constexpr (kMakeP)
      times_rows<false, kTileBytes>(dD, o, stage + L::P);
    else
      times_columns<false>(dD, o, stage + L::P, kTileBytes);
    if constexpr (kSplit) times_columns<false>(dD, o, stage + L::P_lo, kTileBytes);
    wgmma::commit();
    times_columns<false>(G, read, stage + L::q, kRows * 128);
    if constexpr (kSplit) times_columns<false>(G, read_lo, stage + L::q, kRows * 128);
    wgmma::commit();
    if constexpr (!kPause) send_gradients();
    wgmma::wait<1>();
    wgmma::hold(dD);

    float Y[8][4];
    uint32_t d[4][4], d_lo[4][4];
    as_operands<kSplit>(d, d_lo, dD);
    wgmma::fence();
    times_columns<true>(Y, d, stage + L::T, kTileBytes);
    if constexpr (kSplit) {
      times_columns<false>(Y, d_lo, stage + L::T, kTileBytes);
      times_columns<false>(Y, d, stage + L::T_lo, kTileBytes);
      times_columns<false>(Y, d_lo, stage + L::T_lo, kTileBytes);
      times_columns<false>(Y, d, stage + L::T_lo + kTileBytes, kTileBytes);
    }
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::hold(Y), wgmma::hold(G);

    scale_columns(Y, vectors + kBeta * kChunk);
    {
      float erased[8][4];
#pragma unroll
      for (int t = 0; t < 8; ++t)
#pragma unroll
        for (int u = 0; u < 4; ++u) erased[t][u] = -Y[t][u];
      if constexpr (kGate) scale_columns(erased, vectors + kBefore * kChunk);
      as_operands<kSplit>(d, d_lo, erased);
    }
    wgmma::fence();
    times_columns<false>(G, d, stage + L::k, kTileBytes);
    if constexpr (kSplit) times_columns<false>(G, d_lo, stage + L::k, kTileBytes);
    wgmma::commit();
    if constexpr (!kMap) {
      kSplit ? send_wait<0>() : send_wait<1>();
      meet_group();
      put_columns<false>(Y, out);
      if constexpr (kSplit) put_columns<true>(Y, out + L::kResult);
      wgmma::publish();
      meet_group();
      send_rows(static_cast<uint16_t*>(p.dv.data) + row_at(p.dv, span.b, span.t0, 0, h) +
                    first * p.dv.step + v0 - own % 64,
                p.dv.step, out, count);
      if constexpr (kSplit)
        send_rows(
            w.dv_lo + (((span.b * p.H + h) * p.T + span.t0) * p.N + first) * p.V + v0 - own % 64,
            p.V, out + L::kResult, count);
      send_commit();
    }
    wgmma::wait<0>();
    wgmma::hold(G);
    pipeline.free(turn);
  }
  send_wait<0>();
  if constexpr (kMap)
    write_state(G, segments.between + segment * matrix, p.K, p.V, v0 + g);
  else if (p.dstate && stretch.segment == 0)
    write_state(G, static_cast<float*>(p.dstate) + head * matrix, p.K, p.V, v0 + g);
}

template <int KT, int kRows, bool kSplit, bool kGate, bool kMap>
void launch_back(const DeltaProductBackward& p, const ChunkWork& w, const Segments& segments,
                 const StateGradients& dstates, cudaStream_t stream) {
  const int64_t walks = p.S * p.H * segments.count;
  const int columns = columns_of(p.V, (kMap ? walks - p.S * p.H : walks) * p.V / 128);
  const int bytes = Layout<KT, kRows, kSplit, makes_P(kSplit, kGate)>::all(columns);
  auto* kernel = hopper_back<KT, kRows, kSplit, kGate, kMap>;
  allow_shared(kernel, bytes);
  const dim3 blocks(unsigned(walks), unsigned(p.V / columns));
  const int threads = columns * 2 + kFetchers;
  if (segments.count > 1 && !kMap) {
    pdl_launch(kernel, blocks, threads, bytes, stream, p, w, segments, dstates, columns);
  } else {  // the first of its row
    kernel<<<blocks, threads, bytes, stream>>>(p, w, segments, dstates, columns);
    check_launch("delta_product");
  }
}

template <int KT, int kRows, bool kSplit, bool kGate>
void launch_all(const DeltaProductBackward& p, const ChunkWork& w, const Segments& segments,
                const StateGradients& dstates, cudaStream_t stream) {
  if (segments.count > 1) {
    launch_back<KT, kRows, kSplit, kGate, true>(p, w, segments, dstates, stream);
    hopper_join(p, segments, false, stream);
  }
  launch_back<KT, kRows, kSplit, kGate, false>(p, w, segments, dstates, stream);
}

template <int KT, int kRows>
void launch_hopper(const DeltaProductBackward& p, const ChunkWork& w, const Segments& segments,
                   const StateGradients& dstates, cudaStream_t stream) {
  if (p.log_gate)
    w.split ? launch_all<KT, kRows, true, true>(p, w, segments, dstates, stream)
            : launch_all<KT, kRows, false, true>(p, w, segments, dstates, stream);
  else
    w.split ? launch_all<KT, kRows, true, false>(p, w, segments, dstates, stream)
            : launch_all<KT, kRows, false, false>(p, w, segments, dstates, stream);
}

}  // namespace

void hopper_reverse(const DeltaProductBackward& p, const ChunkWork& w, const Segments& segments,
                    const StateGradients& dstates, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.S * p.H == 0) return;
  if (p.K <= 64)
    w.rows == 64 ? launch_hopper<64, 64>(p, w, segments, dstates, on)
                 : launch_hopper<64, 32>(p, w, segments, dstates, on);
  else
    w.rows == 64 ? launch_hopper<128, 64>(p, w, segments, dstates, on)
                 : launch_hopper<128, 32>(p, w, segments, dstates, on);
}

}  // namespace lrnn::kernels::cuda
