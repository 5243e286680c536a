#include "kernels/cuda/delta_product/chunk_sweep.cuh"

// The forward sweep. A warp keeps 16 columns of the state as rows of S^T in float32 registers for
// the whole sequence, in the layout of an accumulator, which is also that of a left operand: S, R
// and D never pass through shared memory. All right operands are inputs or T and P, which all warps
// share. `kSplit` multiplies what rounding left over too, wherever the result enters the state.
namespace lrnn::kernels::cuda {
namespace {

template <int KT, bool kSplit> struct Forward : ChunkSweep<KT, kSplit, true> {
  using Base = ChunkSweep<KT, kSplit, true>;
  using Base::kParts, Base::kTiles, Base::layout, Base::c, Base::g, Base::own, Base::v0, Base::span,
      Base::h, Base::columns, Base::keys, Base::square;
  using State = typename Base::State;
  const DeltaProductForward& p;

  // R = diag(beta) (V - diag(a) K S), then D = T R.
  __device__ __forceinline__ void solve(float (&D)[8][4], const State& S, uint32_t stage,
                                        const float* vectors) const {
    float acc[8][4] = {};
    this->template over_keys<4>(acc, S, keys(stage, layout.k));
    subtract_from_values<true>(acc, vectors, true,
                               stage + layout.values + lane_direct(row_bytes(columns)) + own * 2,
                               row_bytes(columns));
    this->times_triangle(D, acc, [&](auto& left, auto& right, const auto& a, int k, int n) {
      this->times_T(left, right, a, [&](int place) { return square(stage, place).b_rows(k, n); });
    });
  }
  // O = scale diag(a) Q S + P D, 32 queries at a time.
  __device__ __forceinline__ void read(const float (&D)[8][4], const State& S,
                                       const Queries& queries, uint32_t stage,
                                       const float* vectors) const {
    for (int r0 = 0; r0 < queries.rows; r0 += 32) {
      float O[4][4] = {};
      this->template over_keys<2>(O, S, keys(stage, layout.q + r0 * row_bytes(KT)));
      scale_columns(O, vectors + kRead * kChunk + r0);
      const int last = int(queries.at(min(r0 + 31, queries.rows - 1)));
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (k * 16 > last) continue;
        const auto a = as_fragment<kParts>(D[2 * k], D[2 * k + 1]);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const int row = r0 + n * 16;
          multiply(O[2 * n], O[2 * n + 1], a, square(stage, layout.P).b_rows(k * 16, row));
          if constexpr (kSplit)
            multiply(O[2 * n], O[2 * n + 1], a.only(0),
                     square(stage, layout.P_lo).b_rows(k * 16, row));
        }
      }
      if (v0 >= p.V) continue;
      uint16_t* const o = static_cast<uint16_t*>(p.o.data) +
                          row_at(p.o, span.b, span.t0 + queries.token, 0, h) + v0 + (g & ~1);
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        const int r = r0 + t * 8 + 2 * c + (g & 1);
        const typename Base::Outputs outputs(O[t]);
        if (r < queries.rows) outputs.store(o + r * p.o.token);
      }
    }
  }
  // S = a_C S + (diag(r) K)^T D.
  __device__ __forceinline__ void advance(State& S, float (&D)[8][4], uint32_t stage,
                                          const float* vectors) const {
    decay(S, vectors[kBefore * kChunk + kChunk - 1]);
    scale_columns(D, vectors + kAfter * kChunk);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      this->add_rows(S, as_fragment<kParts>(D[2 * k], D[2 * k + 1]), keys(stage, layout.k), k * 16);
  }
};

// D = T diag(beta) (V - diag(a) K S),  O = scale diag(a) Q S + P D,  S' = a_C S + (diag(r) K)^T D
template <int KT, bool kSplit>
__global__ void __launch_bounds__(kMostColumns * 2, 1)
    sweep_forward(DeltaProductForward p, ChunkWork w, SweepSize size) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Forward<KT, kSplit> run{{p, w, p.v, memory, size}, p};
  typename Forward<KT, kSplit>::State S;
  run.read_state(S, p.state);
  if (run.chunks > 0) run.fetch(0);
  copy_commit();
  for (int chunk = 0; chunk < run.chunks; ++chunk) {
    run.fetch_beside(chunk + 1);
    const auto [stage, vectors, first] = run.arrived(chunk);
    if (p.states && run.v0 < p.V)
      store_state<kSplit>(S, static_cast<uint16_t*>(p.states), w.states_lo, run.state_row(chunk),
                          p.K);
    float D[8][4];
    run.solve(D, S, stage, vectors);
    if (p.error && run.v0 < p.V) run.keep_error(D, first, vectors + kBeta * kChunk, p.error);
    if (p.q.data) run.read(D, S, Queries(p, first, run.count(first)), stage, vectors);
    run.advance(S, D, stage, vectors);
    run.done(chunk + 1);
  }
  copy_wait<0>();
  run.write_state(S, p.final_state);
}

template <int KT, bool kSplit>
void launch_forward(const DeltaProductForward& p, const ChunkWork& w, void* stream) {
  const SweepSize size = sweep_size(KT, p.V, w.rows, kChunk, kSplit);
  allow_shared(sweep_forward<KT, kSplit>, size.bytes);
  sweep_forward<KT, kSplit><<<dim3(unsigned(p.S * p.H), unsigned(size.tiles)), size.columns * 2,
                              size.bytes, static_cast<cudaStream_t>(stream)>>>(p, w, size);
  check_launch("delta_product");
}

}  // namespace

void chunk_forward(const DeltaProductForward& p, const ChunkWork& w,
                   [[maybe_unused]] const Segments& segments, void* stream) {
  if (p.S * p.H == 0) return;
#ifdef LRNN_HOPPER
  if (hopper_fits(p)) return hopper_forward(p, w, segments, stream);
#endif
  with_padded_keys(p.K, [&]<int KT>() {
    w.split ? launch_forward<KT, true>(p, w, stream) : launch_forward<KT, false>(p, w, stream);
  });
}

bool chunk_fused_forward([[maybe_unused]] const DeltaProductForward& p,
                         [[maybe_unused]] void* stream) {
#ifdef LRNN_HOPPER
  return hopper_fused_forward(p, stream);
#else
  return false;
#endif
}

}  // namespace lrnn::kernels::cuda
