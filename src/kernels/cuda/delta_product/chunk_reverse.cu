#include "kernels/cuda/delta_product/chunk_sweep.cuh"

// The backward sweep, from the last chunk to the first: the mirror of the forward one. G is the
// gradient of the state, kept as rows of G^T:
//   dD = diag(r) K G' + P^T dO,   Y = T^T dD,   dV = diag(beta) Y
//   G = a_C G' + (scale diag(a) Q)^T dO - (diag(beta a) K)^T Y
// It leaves G' of every chunk and dV, from which all other gradients follow for all chunks at once.
namespace lrnn::kernels::cuda {
namespace {

template <int KT, bool kSplit> struct Backward : ChunkSweep<KT, kSplit, false> {
  using Base = ChunkSweep<KT, kSplit, false>;
  using Base::kParts, Base::layout, Base::c, Base::g, Base::own, Base::columns, Base::keys,
      Base::square;
  using State = typename Base::State;
  const DeltaProductBackward& p;

  // dD += P^T dO, and G += (scale diag(a) Q)^T dO while dO is here.
  __device__ __forceinline__ void read(float (&dD)[8][4], State& G, const Queries& queries,
                                       uint32_t stage, const float* vectors) const {
    const Matrix d_o{stage + layout.values, row_bytes(columns)};
    for (int k = 0; k * 16 < queries.rows; ++k) {
      const auto a = d_o.a_columns(own, k * 16);
      const int64_t last = queries.at(min(k * 16 + 15, queries.rows - 1));
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        if (n * 16 > last) continue;
        multiply(dD[2 * n], dD[2 * n + 1], a, square(stage, layout.P).b_columns(k * 16, n * 16));
        if constexpr (kSplit)
          multiply(dD[2 * n], dD[2 * n + 1], a,
                   square(stage, layout.P_lo).b_columns(k * 16, n * 16));
      }
      const float* const by = vectors + kRead * kChunk + k * 16 + 2 * c;
      this->add_rows(G,
                     times_columns<kParts>(a, *reinterpret_cast<const float2*>(by),
                                           *reinterpret_cast<const float2*>(by + 8)),
                     keys(stage, layout.q), k * 16);
    }
  }
  // Y = T^T dD.
  __device__ __forceinline__ void solve(float (&Y)[8][4], const float (&dD)[8][4],
                                        uint32_t stage) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const auto a = as_fragment<kParts>(dD[2 * k], dD[2 * k + 1]);
#pragma unroll
      for (int n = 0; n <= k; ++n)  // T is triangular
        this->times_T(Y[2 * n], Y[2 * n + 1], a,
                      [&](int place) { return square(stage, place).b_columns(k * 16, n * 16); });
    }
  }
  // dV = diag(beta) Y to memory; Y becomes -diag(beta a) Y.
  __device__ __forceinline__ void store_dv(float (&Y)[8][4], int64_t first,
                                           const float* vectors) const {
    scale_columns(Y, vectors + kBeta * kChunk);
#pragma unroll
    for (int t = 0; t < 8; ++t) {
      this->store_dv_tile(Y[t], t, first, p.dv);
      const float2 before =
          *reinterpret_cast<const float2*>(vectors + kBefore * kChunk + t * 8 + 2 * c);
      Y[t][0] *= -before.x, Y[t][1] *= -before.y, Y[t][2] *= -before.x, Y[t][3] *= -before.y;
    }
  }
};

// dD = diag(r) K G' + P^T dO,  Y = T^T dD,  dV = diag(beta) Y,
// G = a_C G' + (scale diag(a) Q)^T dO - (diag(beta a) K)^T Y
template <int KT, bool kSplit>
__global__ void __launch_bounds__(kMostColumns * 2, 1)
    sweep_backward(DeltaProductBackward p, ChunkWork w, uint16_t* dstates, SweepSize size) {
  extern __shared__ __align__(16) unsigned char memory[];
  using Run = Backward<KT, kSplit>;
  const Run run{{p, w, p.d_o, memory, size}, p};
  typename Run::State G;
  run.read_state(G, p.d_final_state);
  if (run.chunks > 0) run.fetch(run.chunks - 1);
  copy_commit();
  for (int chunk = run.chunks - 1; chunk >= 0; --chunk) {
    run.fetch_beside(chunk - 1);
    const auto [stage, vectors, first] = run.arrived(chunk);
    if (run.v0 < p.V) store_state<kSplit>(G, dstates, w.dstates_lo, run.state_row(chunk), p.K);
    float dD[8][4] = {}, Y[8][4] = {};
    run.template over_keys<4>(dD, G, run.keys(stage, run.layout.k));
    scale_columns(dD, vectors + kAfter * kChunk);
    decay(G, vectors[kBefore * kChunk + kChunk - 1]);
    run.read(dD, G, Queries(p, first, run.count(first)), stage, vectors);
    run.solve(Y, dD, stage);
    run.store_dv(Y, first, vectors);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      run.add_rows(G, as_fragment<Run::kParts>(Y[2 * k], Y[2 * k + 1]),
                   run.keys(stage, run.layout.k), k * 16);
    run.done(chunk - 1);
  }
  copy_wait<0>();
  if (p.dstate) run.write_state(G, p.dstate);
}

template <int KT, bool kSplit>
void launch_reverse(const DeltaProductBackward& p, const ChunkWork& w, uint16_t* dstates,
                    void* stream) {
  const SweepSize size = sweep_size(KT, p.V, w.rows, w.rows, kSplit);
  allow_shared(sweep_backward<KT, kSplit>, size.bytes);
  sweep_backward<KT, kSplit>
      <<<dim3(unsigned(p.S * p.H), unsigned(size.tiles)), size.columns * 2, size.bytes,
         static_cast<cudaStream_t>(stream)>>>(p, w, dstates, size);
  check_launch("delta_product");
}

}  // namespace

void chunk_reverse(const DeltaProductBackward& p, const ChunkWork& w,
                   [[maybe_unused]] const Segments& segments, const StateGradients& dstates,
                   void* stream) {
  if (p.S * p.H == 0) return;
#ifdef LRNN_HOPPER
  if (hopper_fits(p)) return hopper_reverse(p, w, segments, dstates, stream);
#endif
  with_padded_keys(p.K, [&]<int KT>() {
    w.split ? launch_reverse<KT, true>(p, w, dstates.chunks, stream)
            : launch_reverse<KT, false>(p, w, dstates.chunks, stream);
  });
}

}  // namespace lrnn::kernels::cuda
