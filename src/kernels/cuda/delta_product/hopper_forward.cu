#include "kernels/cuda/delta_product/hopper.cuh"

// The forward sweep of chunk_forward.cu on Hopper's warp-group products: the same registers, but
// the right operands are read from shared memory by the tensor cores themselves, while the warps
// convert and store. With kMap it only follows the state through a segment, from zero for B and
// from the unit matrix, with no values, for M. The first segment starts from the true state and
// needs no M, the last needs neither. Where that would be more than one turn of the chip,
// hopper_map.cu does it in one.
namespace lrnn::kernels::cuda {
namespace {

template <int KT, int kRows, bool kSplit> struct Layout {  // of one stage, in bytes
  static constexpr int k = 0, q = k + KT / 64 * kTileBytes, T = q + KT / 64 * kRows * 128,
                       T_lo = T + kTileBytes, P = T_lo + (kSplit ? 2 * kTileBytes : 0),
                       P_lo = P + kRows * 128, v = P_lo + (kSplit ? kRows * 128 : 0);
  static __host__ __device__ int vectors(int columns) { return v + kChunk * row_bytes(columns); }
  static __host__ __device__ int bytes(int columns) {
    return (vectors(columns) + kVectorCount * kChunk * 4 + 1023) / 1024 * 1024;
  }
  // Behind the two stages, per warp group: tiles of o and of the errors, and scratch for the state,
  // which in split mode takes the place of the tiles.
  static constexpr int kResult = kChunk * row_bytes(64), kState = 16 * KT * 2;
  static constexpr int kState0 = kSplit ? 0 : 2 * kResult;
  static constexpr int kOut =
      kState0 + 4 * kState > 2 * kResult ? kState0 + 4 * kState : 2 * kResult;
  static __host__ __device__ int all(int columns) {
    return 2 * bytes(columns) + columns / 64 * kOut + Pipeline::kBytes;
  }
};

template <int KT, int kRows, bool kSplit, bool kGate, bool kMap>
__global__ void __launch_bounds__(kMostThreads, 1)
    hopper_sweep(DeltaProductForward p, ChunkWork w, Segments segments, int columns) {
  extern __shared__ __align__(1024) unsigned char memory[];
  using L = Layout<KT, kRows, kSplit>;
  constexpr int kTiles = KT / 8, kSteps = KT / 16;
  pdl_trigger();
  const Stretch stretch(p, segments);
  const int units = kMap ? KT / columns : 0, tile = int(blockIdx.y) - units;
  const bool unit = tile < 0, last = stretch.segment == segments.count - 1;
  if (kMap && (last || (unit && stretch.segment == 0))) return;
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4, own = threadIdx.x / 32 * 16;
  const int64_t s = stretch.s, h = stretch.h;
  const int64_t v_tile = int64_t(unit ? blockIdx.y : tile) * columns, v0 = v_tile + own;
  const Span span = span_of(p, s);
  const int64_t steps = span.length * p.N, head = s * p.H + h, slot0 = first_slot(p, s, kChunk);
  const int groups = columns / 64, stage_bytes = L::bytes(columns);
  const Pipeline pipeline(shared_address(memory) + L::all(columns) - Pipeline::kBytes, groups);
  pdl_wait();

  if (int(threadIdx.x) >= groups * 128) {
    give_registers<kSplit>();
    const int rank = threadIdx.x - groups * 128;
    const uint16_t* const k_rows =
        static_cast<const uint16_t*>(p.k.data) + row_at(p.k, span.b, span.t0, 0, h);
    const uint16_t* const v_rows = static_cast<const uint16_t*>(p.v.data) +
                                   row_at(p.v, span.b, span.t0, 0, h) + (unit ? 0 : v_tile);
    const uint16_t* const q_rows = static_cast<const uint16_t*>(p.q.data) +
                                   (p.q.data ? row_at(p.q, span.b, span.t0, 0, h) : 0);
    for (int chunk = stretch.begin; chunk < stretch.end; ++chunk) {
      const int n = chunk - stretch.begin;
      const int64_t first = int64_t(chunk) * kChunk, at = (slot0 + chunk) * p.H + h;
      const int count = int(min(int64_t(kChunk), steps - first));
      const uint32_t stage = shared_address(memory) + n % 2 * stage_bytes;
      pipeline.wait_free(n);
      if (rank == 0)
        bring_chunk<L, kRows, kSplit>(pipeline, n, stage, L::vectors(columns), w, at,
                                      !kMap && p.q.data);
      fetch_tiles<KT, kChunk, kFetchers>(rank, stage + L::k, k_rows + first * p.k.step, p.k.step,
                                         count, int(p.K));
      const uint16_t* const v = v_rows + first * p.v.step;
      if (columns == 128)
        fetch_rows_by<128, kChunk, kFetchers>(rank, stage + L::v, v, p.v.step, unit ? 0 : count);
      else
        fetch_rows_by<64, kChunk, kFetchers>(rank, stage + L::v, v, p.v.step, unit ? 0 : count);
      if (!kMap && p.q.data) {
        const Queries queries(p, first, count);
        fetch_tiles<KT, kRows, kFetchers>(rank, stage + L::q, q_rows + queries.token * p.q.token,
                                          p.q.token, queries.rows, int(p.K));
      }
      copy_commit();
      copy_wait<0>();
      wgmma::publish();
      pipeline.filled(n);
    }
    return;
  }
  take_registers<kSplit>();

  const uint32_t out = shared_address(memory) + 2 * stage_bytes + threadIdx.x / 128 * L::kOut;
  const uint32_t state_scratch = out + L::kState0 + threadIdx.x / 32 % 4 * L::kState;

  float S[kTiles][4];
  const int64_t matrix = p.K * p.V, segment = stretch.at(p, segments);
  const float* const initial = static_cast<const float*>(p.state);
  read_state(S,
             stretch.segment > 0 ? (kMap ? nullptr : segments.between + (segment - 1) * matrix)
             : initial           ? initial + head * matrix
                                 : nullptr,
             p.K, p.V, v0 + g);
  if (kMap && unit) unit_state(S, p.K, v0 + g);
  for (int chunk = stretch.begin; chunk < stretch.end; ++chunk) {
    const int turn = chunk - stretch.begin;
    pipeline.wait_filled(turn);
    const unsigned char* const here = memory + turn % 2 * stage_bytes;
    const uint32_t stage = shared_address(here);
    const float* const vectors = reinterpret_cast<const float*>(here + L::vectors(columns));
    const int64_t first = int64_t(chunk) * kChunk;
    const int count = int(min(int64_t(kChunk), steps - first));

    float R[8][4], O[kRows / 8][4], D[8][4];
    uint32_t a[kSteps][4], a_lo[kSteps][4];
    as_operands<kSplit>(a, a_lo, S);
    wgmma::fence();
    times_rows<true, kTileBytes>(R, a, stage + L::k);
    if constexpr (kSplit) times_rows<false, kTileBytes>(R, a_lo, stage + L::k);
    wgmma::commit();
    // Without queries this multiplies what happens to lie there and nobody looks at O: a branch
    // between the products would make the compiler wait for them.
    if constexpr (!kMap) {
      times_rows<true, kRows * 128>(O, a, stage + L::q);
      if constexpr (kSplit) times_rows<false, kRows * 128>(O, a_lo, stage + L::q);
    }
    wgmma::commit();
    if (!kMap && p.states) {
      if constexpr (kSplit) {
        send_wait<0>();
        meet_group();
      } else {
        send_wait<1>();
        __syncwarp();
      }
      const int64_t to = ((slot0 + chunk) * p.H + h) * p.V * KT + v0 * 64;
      send_state(a, static_cast<uint16_t*>(p.states) + to, p.V, state_scratch);
      if constexpr (kSplit) {
        send_commit();
        send_wait<0>();
        __syncwarp();
        send_state(a_lo, w.states_lo + to, p.V, state_scratch);
      }
    }
    send_commit();
    wgmma::wait<kSplit ? 0 : 1>();  // the registers of split operands are needed again
    wgmma::hold(R);

    subtract_from_values<kGate>(R, vectors, true,
                                stage + L::v + lane_direct(row_bytes(columns)) + own * 2,
                                row_bytes(columns));
    uint32_t r[4][4], r_lo[4][4];
    as_operands<kSplit>(r, r_lo, R);
    wgmma::fence();
    times_rows<true, kTileBytes>(D, r, stage + L::T);
    if constexpr (kSplit) {
      times_rows<false, kTileBytes>(D, r_lo, stage + L::T);
      times_rows<false, kTileBytes>(D, r, stage + L::T_lo);
      times_rows<false, kTileBytes>(D, r_lo, stage + L::T_lo);
      times_rows<false, kTileBytes>(D, r, stage + L::T_lo + kTileBytes);
    }
    wgmma::commit();
    if constexpr (kGate) scale(S, vectors[kBefore * kChunk + kChunk - 1]);
    wgmma::wait<0>();
    wgmma::hold(D);
    if constexpr (!kMap) wgmma::hold(O);

    uint32_t d[4][4], d_lo[4][4];
    [[maybe_unused]] uint32_t e[4][4], e_lo[4][4];
    as_operands<kSplit>(d, d_lo, D);
    if constexpr (!kMap) scale_columns(O, vectors + kRead * kChunk);
    wgmma::fence();
    if constexpr (!kMap) {
      times_rows<false, kTileBytes>(O, d, stage + L::P);
      if constexpr (kSplit) {
        times_rows<false, kTileBytes>(O, d_lo, stage + L::P);
        times_rows<false, kTileBytes>(O, d, stage + L::P_lo);
      }
    }
    wgmma::commit();
    if constexpr (kGate) {  // while O is made
      float after[8][4];
#pragma unroll
      for (int t = 0; t < 8; ++t)
#pragma unroll
        for (int u = 0; u < 4; ++u) after[t][u] = D[t][u];
      scale_columns(after, vectors + kAfter * kChunk);
      as_operands<kSplit>(e, e_lo, after);
      wgmma::fence();
    }
    times_columns<false>(S, kGate ? e : d, stage + L::k, kTileBytes);
    if constexpr (kSplit) times_columns<false>(S, kGate ? e_lo : d_lo, stage + L::k, kTileBytes);
    wgmma::commit();

    if constexpr (!kMap) {
      if constexpr (kSplit)
        send_wait<0>();
      else
        send_wait<1>();
      meet_group();
      if (p.error) {
#pragma unroll
        for (int t = 0; t < 8; ++t) {
          const float2 beta =
              *reinterpret_cast<const float2*>(vectors + kBeta * kChunk + t * 8 + 2 * c);
          const float x = reciprocal(beta.x), y = reciprocal(beta.y);
          D[t][0] *= x, D[t][1] *= y, D[t][2] *= x, D[t][3] *= y;
        }
        put_columns<false>(D, out + L::kResult);
      }
      wgmma::wait<1>();
      wgmma::hold(O);
      if (p.q.data) put_columns<false>(O, out);
      wgmma::publish();
      meet_group();
      if (p.q.data) {
        const Queries queries(p, first, count);
        send_rows(static_cast<uint16_t*>(p.o.data) +
                      row_at(p.o, span.b, span.t0 + queries.token, 0, h) + v0 - own % 64,
                  p.o.token, out, queries.rows);
      }
      if (p.error) {
        const int64_t to =
            (((span.b * p.H + h) * p.T + span.t0) * p.N + first) * p.V + v0 - own % 64;
        send_rows(static_cast<uint16_t*>(p.error) + to, p.V, out + L::kResult, count);
        if constexpr (kSplit) {  // lo follows through the same tile
          send_commit();
          send_wait<0>();
          meet_group();
          put_columns<true>(D, out + L::kResult);
          wgmma::publish();
          meet_group();
          send_rows(w.error_lo + to, p.V, out + L::kResult, count);
        }
      }
      send_commit();
    }
    wgmma::wait<0>();
    wgmma::hold(S);
    pipeline.free(turn);
  }
  send_wait<0>();
  if constexpr (kMap) {
    if (unit)
      write_state(S, segments.maps + segment * p.K * KT, p.K, KT, v0 + g);
    else
      write_state(S, segments.between + segment * matrix, p.K, p.V, v0 + g);
  } else {
    if (last) write_state(S, static_cast<float*>(p.final_state) + head * matrix, p.K, p.V, v0 + g);
  }
}

template <int KT, int kRows, bool kSplit, bool kGate, bool kMap>
void launch_sweep(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                  cudaStream_t stream) {
  const int64_t heads = p.S * p.H, walks = heads * segments.count;
  const int64_t used = kMap ? heads * ((segments.count - 1) * p.V + (segments.count - 2) * KT)
                            : walks * p.V;  // columns that somebody walks with
  const int columns = kMap && KT == 64 ? 64 : columns_of(p.V, used / 128);
  if constexpr (kMap && !kSplit)
    if (used / columns > processors() && used / 64 <= kMapBlocks * processors())
      return hopper_map(p, w, segments, stream);
  const int bytes = Layout<KT, kRows, kSplit>::all(columns);
  const auto tiles = unsigned((p.V + (kMap ? KT : 0)) / columns);
  auto* kernel = hopper_sweep<KT, kRows, kSplit, kGate, kMap>;
  allow_shared(kernel, bytes);
  pdl_launch(kernel, dim3(unsigned(walks), tiles), columns * 2 + kFetchers, bytes, stream, p, w,
             segments, columns);
}

template <int KT, int kRows, bool kSplit, bool kGate>
void launch_all(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                cudaStream_t stream) {
  if (segments.count > 1) {
    DeltaProductForward map = p;
    map.q.data = map.error = map.states = nullptr;
    launch_sweep<KT, 64, kSplit, kGate, true>(map, w, segments, stream);
    hopper_join(p, segments, true, stream);
  }
  launch_sweep<KT, kRows, kSplit, kGate, false>(p, w, segments, stream);
}

template <int KT, int kRows>
void launch_hopper(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                   cudaStream_t stream) {
  if (p.log_gate)
    w.split ? launch_all<KT, kRows, true, true>(p, w, segments, stream)
            : launch_all<KT, kRows, false, true>(p, w, segments, stream);
  else
    w.split ? launch_all<KT, kRows, true, false>(p, w, segments, stream)
            : launch_all<KT, kRows, false, false>(p, w, segments, stream);
}

}  // namespace

void hopper_forward(const DeltaProductForward& p, const ChunkWork& w, const Segments& segments,
                    void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.S * p.H == 0) return;
  if (p.K <= 64)
    w.rows == 64 ? launch_hopper<64, 64>(p, w, segments, on)
                 : launch_hopper<64, 32>(p, w, segments, on);
  else
    w.rows == 64 ? launch_hopper<128, 64>(p, w, segments, on)
                 : launch_hopper<128, 32>(p, w, segments, on);
}

}  // namespace lrnn::kernels::cuda
