#include "kernels/cuda/delta_product/chunk_channels_sweep.cuh"

// The backward sweep with gates of key channels, the mirror of the forward one:
//   dD = Kr G' + P^T dO,   Y = T^T dD,   dV = diag(beta) Y
//   G = diag(a_C) G' + Qg^T dO - Kg^T dV
// It leaves G' of every chunk and dV.
namespace lrnn::kernels::cuda {
namespace {

using namespace channels;

template <int KT, bool kSplit> struct Reverse : Sweep<KT, kSplit, false> {
  using Base = Sweep<KT, kSplit, false>;
  using Base::kParts, Base::own, Base::Kg, Base::Qg, Base::Kr, Base::T, Base::P;
  using State = typename Base::State;
  const DeltaProductBackward& p;

  // dD += P^T dO, G += Qg^T dO.
  __device__ __forceinline__ void read(float (&dD)[8][4], State& G, int64_t last) const {
#pragma unroll 1
    for (int k = 0; k * 16 <= last; ++k) {
      const auto a = this->rows_of_values.a_columns(own, k * 16);
#pragma unroll
      for (int n = 0; n < 4; ++n)
        if (n <= k) multiply(dD[2 * n], dD[2 * n + 1], a, P.b_columns(k * 16, n * 16));
      this->add_rows(G, a, Qg, k * 16);
    }
  }
  // dV = diag(beta) T^T dD to memory, G -= Kg^T dV.
  __device__ __forceinline__ void solve(const float (&dD)[8][4], State& G, int64_t first) const {
    float Y[8][4] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const auto a = as_fragment<kParts>(dD[2 * k], dD[2 * k + 1]);
#pragma unroll
      for (int n = 0; n <= k; ++n)  // T is triangular
        multiply(Y[2 * n], Y[2 * n + 1], a, T.b_columns(k * 16, n * 16));
    }
    scale_columns(Y, this->beta);
#pragma unroll
    for (int t = 0; t < 8; ++t) this->store_dv_tile(Y[t], t, first, p.dv);
    scale(Y, -1.f);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      this->add_rows(G, as_fragment<kParts>(Y[2 * k], Y[2 * k + 1]), Kg, k * 16);
  }
};

template <int KT, bool kSplit>
__global__ void __launch_bounds__(kMostColumns * 2, 1)
    sweep_channels_backward(DeltaProductBackward p, ChannelChunks w, int columns) {
  extern __shared__ __align__(16) unsigned char memory[];
  ChunkWork lo;
  lo.dv_lo = w.dv_lo;
  const Reverse<KT, kSplit> run{
      {{p, lo, p.d_o, memory, columns}, static_cast<const unsigned char*>(w.work)}, p};
  typename Reverse<KT, kSplit>::State G;
  run.read_state(G, p.d_final_state);
  run.fetch_write(run.chunks - 1), run.fetch_read(run.chunks - 1);
  for (int chunk = run.chunks - 1; chunk >= 0; --chunk) {
    run.arrived();
    run.fetch_solve(chunk);
    if (run.v0 < p.V) store_state<kSplit>(G, w.dstates, w.dstates_lo, run.state_row(chunk), p.K);
    float dD[8][4] = {};
    run.template over_keys<4>(dD, G, run.Kr, 0);
    scale_columns(G, run.decays);
    run.arrived();
    run.fetch_write(chunk - 1);
    const Queries queries = run.queries(chunk);
    if (queries.rows > 0) run.read(dD, G, queries.at(queries.rows - 1));
    run.arrived();
    run.fetch_read(chunk - 1);
    run.solve(dD, G, int64_t(chunk) * kChunk);
  }
  copy_wait<0>();
  if (p.dstate) run.write_state(G, p.dstate);
}

}  // namespace

void channel_reverse(const DeltaProductBackward& p, const ChannelChunks& w, void* stream) {
  if (p.S * p.H == 0) return;
  with_record(p, w.split, [&]<int KT, bool kSplit>() {
    const Columns of(p);
    const int bytes = Reverse<KT, kSplit>::Layout::bytes(of.columns);
    auto* kernel = sweep_channels_backward<KT, kSplit>;
    allow_shared(kernel, bytes);
    kernel<<<dim3(unsigned(p.S * p.H), unsigned(of.tiles)), of.columns * 2, bytes,
             static_cast<cudaStream_t>(stream)>>>(p, w, of.columns);
  });
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
