#include "kernels/cuda/hopper.cuh"

// The forward sweep of chunk_forward.cu on Hopper's warp-group products: the same registers, but
// the right operands are read from shared memory by the tensor cores themselves, while the warps
// convert and store.
namespace lrnn::kernels::cuda {
namespace {

template <int KT, int kRows, bool kSplit> struct Layout {  // of one stage, in bytes
  static constexpr int k = 0, q = k + KT / 64 * kTileBytes, T = q + KT / 64 * kRows * 128,
                       T_rest = T + kTileBytes, P = T_rest + (kSplit ? kTileBytes : 0),
                       P_rest = P + kRows * 128, v = P_rest + (kSplit ? kRows * 128 : 0);
  static __host__ __device__ int vectors(int columns) { return v + kChunk * row_bytes(columns); }
  static __host__ __device__ int bytes(int columns) {
    return (vectors(columns) + 4 * kChunk * 4 + 1023) / 1024 * 1024;
  }
  // Behind the two stages, per warp group: tiles of o and of the errors, and room for the state,
  // which in split mode takes the place of the tiles.
  static constexpr int kResult = kChunk * row_bytes(64), kState = 16 * row_bytes(KT);
  static constexpr int kState0 = kSplit ? 0 : 2 * kResult;
  static constexpr int kOut =
      kState0 + 4 * kState > 2 * kResult ? kState0 + 4 * kState : 2 * kResult;
  static __host__ __device__ int all(int columns) {
    return 2 * bytes(columns) + columns / 64 * kOut;
  }
};

template <int KT, int kRows, bool kSplit>
__global__ void __launch_bounds__(256, 1)
    hopper_sweep(DeltaProductForward p, ChunkWork w, int columns) {
  extern __shared__ __align__(1024) unsigned char memory[];
  using L = Layout<KT, kRows, kSplit>;
  constexpr int kTiles = KT / 8, kSteps = KT / 16;
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4, own = threadIdx.x / 32 * 16;
  const int64_t s = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const int64_t v_tile = int64_t(blockIdx.y) * columns, v0 = v_tile + own;
  const Span span = span_of(p, s);
  const int64_t steps = span.length * p.N, head = s * p.H + h, slot0 = first_slot(p, s, kChunk);
  const int chunks = int((steps + kChunk - 1) / kChunk), stage_bytes = L::bytes(columns);
  const uint16_t* const k_rows =
      static_cast<const uint16_t*>(p.k.data) + row_at(p.k, span.b, span.t0, 0, h);
  const uint16_t* const v_rows =
      static_cast<const uint16_t*>(p.v.data) + row_at(p.v, span.b, span.t0, 0, h) + v_tile;
  const uint16_t* const q_rows =
      static_cast<const uint16_t*>(p.q.data) + (p.q.data ? row_at(p.q, span.b, span.t0, 0, h) : 0);

  const auto fetch = [&](int chunk) {
    const int64_t first = int64_t(chunk) * kChunk, at = (slot0 + chunk) * p.H + h;
    const int count = int(min(int64_t(kChunk), steps - first));
    const uint32_t stage = shared_address(memory) + (chunk & 1) * stage_bytes;
    fetch_tiles<KT, kChunk>(stage + L::k, k_rows + first * p.k.step, p.k.step, count, int(p.K));
    fetch_rows(stage + L::v, v_rows + first * p.v.step, p.v.step, kChunk, count, columns, columns);
    fetch_tile<kChunk>(stage + L::T, w.T + at * kChunk * kChunk);
    if (kSplit) fetch_tile<kChunk>(stage + L::T_rest, w.T_rest + at * kChunk * kChunk);
    if (p.q.data) {
      const Queries queries(p, first, count);
      fetch_tiles<KT, kRows>(stage + L::q, q_rows + queries.token * p.q.token, p.q.token,
                             queries.rows, int(p.K));
      fetch_tile<kRows>(stage + L::P, w.P + at * kRows * kChunk);
      if (kSplit) fetch_tile<kRows>(stage + L::P_rest, w.P_rest + at * kRows * kChunk);
    }
    fetch_vectors(stage + L::vectors(columns), w.vectors + at * 4 * kChunk);
  };

  const uint32_t out = shared_address(memory) + 2 * stage_bytes + threadIdx.x / 128 * L::kOut;
  const uint32_t state_room = out + L::kState0 + threadIdx.x / 32 % 4 * L::kState;

  float S[kTiles][4];
  const float* const initial = static_cast<const float*>(p.state);
  read_state(S, initial ? initial + head * p.K * p.V : nullptr, p.K, p.V, v0 + g);
  if (chunks > 0) fetch(0);
  copy_commit();
  for (int chunk = 0; chunk < chunks; ++chunk) {
    if (chunk + 1 < chunks) fetch(chunk + 1);
    copy_commit();
    copy_wait<1>();
    wgmma::publish();
    __syncthreads();
    const unsigned char* const here = memory + (chunk & 1) * stage_bytes;
    const uint32_t stage = shared_address(here);
    const float* const vectors = reinterpret_cast<const float*>(here + L::vectors(columns));
    const int64_t first = int64_t(chunk) * kChunk;
    const int count = int(min(int64_t(kChunk), steps - first));

    float R[8][4], O[kRows / 8][4], D[8][4];
    uint32_t a[kSteps][4], a_rest[kSteps][4];
    as_operands<kSplit>(a, a_rest, S);
    wgmma::fence();
    times_rows<true, kTileBytes>(R, a, stage + L::k);
    if constexpr (kSplit) times_rows<false, kTileBytes>(R, a_rest, stage + L::k);
    wgmma::commit();
    // Without queries this multiplies what happens to lie there and nobody looks at O: a branch
    // between the products would make the compiler wait for them.
    times_rows<true, kRows * 128>(O, a, stage + L::q);
    if constexpr (kSplit) times_rows<false, kRows * 128>(O, a_rest, stage + L::q);
    wgmma::commit();
    if (p.states) {
      if constexpr (kSplit) {
        send_wait<0>();
        meet_group();
      } else {
        send_wait<1>();
        __syncwarp();
      }
      send_state(a,
                 static_cast<uint16_t*>(p.states) + (((slot0 + chunk) * p.H + h) * p.V + v0) * p.K,
                 p.K, state_room);
    }
    send_commit();
    wgmma::wait<1>();
    wgmma::hold(R);

    uint32_t r[4][4], r_rest[4][4];
    const uint32_t v_at = stage + L::v + lane_direct(row_bytes(columns)) + own * 2;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      uint32_t v[4];
      ldmatrix_transposed(v, v_at + n * 16 * row_bytes(columns));
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float(&x)[4] = R[2 * n + half];
        const int i = (2 * n + half) * 8 + 2 * c;
        const float2 beta = *reinterpret_cast<const float2*>(vectors + kBeta * kChunk + i);
        const float2 before = *reinterpret_cast<const float2*>(vectors + kBefore * kChunk + i);
        x[0] = beta.x * (low_of(v[2 * half]) - before.x * x[0]);
        x[1] = beta.y * (high_of(v[2 * half]) - before.y * x[1]);
        x[2] = beta.x * (low_of(v[2 * half + 1]) - before.x * x[2]);
        x[3] = beta.y * (high_of(v[2 * half + 1]) - before.y * x[3]);
      }
    }
    as_operands<kSplit>(r, r_rest, R);
    wgmma::fence();
    times_rows<true, kTileBytes>(D, r, stage + L::T);
    if constexpr (kSplit) {
      times_rows<false, kTileBytes>(D, r_rest, stage + L::T);
      times_rows<false, kTileBytes>(D, r, stage + L::T_rest);
    }
    wgmma::commit();
    if (p.log_gate) {
      const float decay = vectors[kBefore * kChunk + kChunk - 1];
#pragma unroll
      for (int t = 0; t < kTiles; ++t)
#pragma unroll
        for (int u = 0; u < 4; ++u) S[t][u] *= decay;
    }
    wgmma::wait<0>();
    wgmma::hold(D), wgmma::hold(O);

    uint32_t d[4][4], d_rest[4][4], e[4][4], e_rest[4][4];
    as_operands<kSplit>(d, d_rest, D);
    scale_columns(O, vectors + kRead * kChunk);
    if (p.log_gate) {
      float after[8][4];
#pragma unroll
      for (int t = 0; t < 8; ++t)
#pragma unroll
        for (int u = 0; u < 4; ++u) after[t][u] = D[t][u];
      scale_columns(after, vectors + kAfter * kChunk);
      as_operands<kSplit>(e, e_rest, after);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          e[k][u] = d[k][u];
          if constexpr (kSplit) e_rest[k][u] = d_rest[k][u];
        }
    }
    wgmma::fence();
    times_rows<false, kTileBytes>(O, d, stage + L::P);
    if constexpr (kSplit) {
      times_rows<false, kTileBytes>(O, d_rest, stage + L::P);
      times_rows<false, kTileBytes>(O, d, stage + L::P_rest);
    }
    wgmma::commit();
    times_columns<false>(S, e, stage + L::k, kTileBytes);
    if constexpr (kSplit) times_columns<false>(S, e_rest, stage + L::k, kTileBytes);
    wgmma::commit();

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
        const float x = __fdividef(1.f, beta.x), y = __fdividef(1.f, beta.y);
        D[t][0] *= x, D[t][1] *= y, D[t][2] *= x, D[t][3] *= y;
      }
      put_columns(D, out + L::kResult);
    }
    wgmma::wait<1>();
    wgmma::hold(O);
    const int row = threadIdx.x % 128;
    if (p.q.data) put_columns(O, out);
    wgmma::publish();
    meet_group();
    if (p.q.data) {
      const Queries queries(p, first, count);
      send_rows(static_cast<uint16_t*>(p.o.data) +
                    row_at(p.o, span.b, span.t0 + queries.token, 0, h) + v0 - own % 64,
                p.o.token, out, row, queries.rows);
    }
    if (p.error)
      send_rows(static_cast<uint16_t*>(p.error) +
                    (((span.b * p.H + h) * p.T + span.t0) * p.N + first) * p.V + v0 - own % 64,
                p.V, out + L::kResult, row - 64, count);
    send_commit();
    wgmma::wait<0>();
    wgmma::hold(S);
    __syncthreads();
  }
  copy_wait<0>();
  send_wait<0>();
  write_state(S, static_cast<float*>(p.final_state) + head * p.K * p.V, p.K, p.V, v0 + g);
}

template <int KT, int kRows, bool kSplit>
void launch_hopper(const DeltaProductForward& p, const ChunkWork& w, cudaStream_t stream) {
  const int columns = p.V % 128 == 0 ? 128 : 64, bytes = Layout<KT, kRows, kSplit>::all(columns);
  auto* kernel = hopper_sweep<KT, kRows, kSplit>;
  allow_shared(kernel, bytes);
  kernel<<<dim3(unsigned(p.S * p.H), unsigned(p.V / columns)), columns * 2, bytes, stream>>>(
      p, w, columns);
  check_launch("delta_product");
}

template <int KT, int kRows>
void launch_hopper(const DeltaProductForward& p, const ChunkWork& w, cudaStream_t stream) {
  w.split ? launch_hopper<KT, kRows, true>(p, w, stream)
          : launch_hopper<KT, kRows, false>(p, w, stream);
}

}  // namespace

void hopper_forward(const DeltaProductForward& p, const ChunkWork& w, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.S * p.H == 0) return;
  if (p.K <= 64)
    w.rows == 64 ? launch_hopper<64, 64>(p, w, on) : launch_hopper<64, 32>(p, w, on);
  else
    w.rows == 64 ? launch_hopper<128, 64>(p, w, on) : launch_hopper<128, 32>(p, w, on);
}

}  // namespace lrnn::kernels::cuda
