#include "kernels/cuda/delta_product/chunk_channels_sweep.cuh"

// The forward sweep with gates of key channels: chunk_forward.cu on other matrices.
namespace lrnn::kernels::cuda {
namespace {

using namespace channels;

template <int KT, bool kSplit> struct Forward : Sweep<KT, kSplit, true> {
  using Base = Sweep<KT, kSplit, true>;
  using Base::kParts, Base::c, Base::g, Base::own, Base::v0, Base::span, Base::h, Base::Kg,
      Base::Qg, Base::Kr, Base::T, Base::P;
  using State = typename Base::State;
  const DeltaProductForward& p;

  // D = T diag(beta) (V - Kg S).
  __device__ __forceinline__ void solve(float (&D)[8][4], const State& S) const {
    float acc[8][4] = {};
    this->template over_keys<4>(acc, S, Kg, 0);
    const int row = this->rows_of_values.row;
    subtract_from_values<false>(acc, this->beta, true,
                                this->rows_of_values.base + lane_direct(row) + own * 2, row);
    Fragment<kParts> R[4];
    as_fragments(R, acc);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int u = 0; u < 4; ++u) D[2 * n][u] = D[2 * n + 1][u] = 0;
#pragma unroll
      for (int k = 0; k <= n; ++k)  // T is triangular
        multiply(D[2 * n], D[2 * n + 1], R[k], T.b_rows(k * 16, n * 16));
    }
  }
  // O = Qg S + P D, 32 micro-steps at a time.
  __device__ __forceinline__ void read(const float (&D)[8][4], const State& S,
                                       const Queries& queries) const {
    const int64_t last = queries.rows > 0 ? queries.at(queries.rows - 1) : -1;
    for (int i0 = 0; i0 <= last; i0 += 32) {
      float O[4][4] = {};
      this->template over_keys<2>(O, S, Qg, i0);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (k * 16 > i0 + 16) continue;
        const auto a = as_fragment<kParts>(D[2 * k], D[2 * k + 1]);
#pragma unroll
        for (int n = 0; n < 2; ++n)
          multiply(O[2 * n], O[2 * n + 1], a, P.b_rows(k * 16, i0 + n * 16));
      }
      if (v0 >= p.V) continue;
      uint16_t* const o = static_cast<uint16_t*>(p.o.data) +
                          row_at(p.o, span.b, span.t0 + queries.token, 0, h) + v0 + (g & ~1);
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        const int r = queries.row(i0 + t * 8 + 2 * c + (g & 1));
        const float2 upper = neighbours(O[t][0], O[t][1]), lower = neighbours(O[t][2], O[t][3]);
        if (r < 0) continue;
        *reinterpret_cast<uint32_t*>(o + r * p.o.token) = pack(upper.x, upper.y);
        *reinterpret_cast<uint32_t*>(o + r * p.o.token + 8) = pack(lower.x, lower.y);
      }
    }
  }
  // S = diag(a_C) S + Kr^T D.
  __device__ __forceinline__ void advance(State& S, const float (&D)[8][4]) const {
    scale_columns(S, this->decays);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      this->add_rows(S, as_fragment<kParts>(D[2 * k], D[2 * k + 1]), Kr, k * 16);
  }
};

template <int KT, bool kSplit>
__global__ void __launch_bounds__(kMostColumns * 2, 1)
    sweep_channels_forward(DeltaProductForward p, ChannelChunks w, int columns) {
  extern __shared__ __align__(16) unsigned char memory[];
  ChunkWork lo;
  lo.error_lo = w.error_lo;
  const Forward<KT, kSplit> run{
      {{p, lo, p.v, memory, columns}, static_cast<const unsigned char*>(w.work)}, p};
  typename Forward<KT, kSplit>::State S;
  run.read_state(S, p.state);
  run.fetch_solve(0), run.fetch_read(0);
  for (int chunk = 0; chunk < run.chunks; ++chunk) {
    const int64_t first = int64_t(chunk) * kChunk;
    run.arrived();
    run.fetch_write(chunk);
    if (w.states && run.v0 < p.V)
      store_state<kSplit>(S, w.states, w.states_lo, run.state_row(chunk), p.K);
    float D[8][4];
    run.solve(D, S);
    if (p.error && run.v0 < p.V) run.keep_error(D, first, run.beta, p.error);
    run.arrived();
    run.fetch_solve(chunk + 1);
    if (p.q.data) run.read(D, S, run.queries(chunk));
    run.arrived();
    run.fetch_read(chunk + 1);
    run.advance(S, D);
  }
  copy_wait<0>();
  run.write_state(S, p.final_state);
}

}  // namespace

void channel_forward(const DeltaProductForward& p, const ChannelChunks& w, void* stream) {
  if (p.S * p.H == 0) return;
  with_record(p, w.split, [&]<int KT, bool kSplit>() {
    const Columns of(p);
    const int bytes = Forward<KT, kSplit>::Layout::bytes(of.columns);
    auto* kernel = sweep_channels_forward<KT, kSplit>;
    allow_shared(kernel, bytes);
    kernel<<<dim3(unsigned(p.S * p.H), unsigned(of.tiles)), of.columns * 2, bytes,
             static_cast<cudaStream_t>(stream)>>>(p, w, of.columns);
  });
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
