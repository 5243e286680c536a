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
  using Problem = DeltaProductBackward;
  const Problem& p;

  static __device__ __forceinline__ const Rows& values_of(const Problem& p) { return p.d_o; }

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

  __device__ __forceinline__ void walk(const ChannelChunks& w) const {
    State G;
    this->read_state(G, p.d_final_state);
    this->fetch_write(this->chunks - 1), this->fetch_read(this->chunks - 1);
    for (int chunk = this->chunks - 1; chunk >= 0; --chunk) {
      this->arrived();
      this->fetch_solve(chunk);
      if (this->v0 < p.V)
        store_state<kSplit>(G, w.dstates, w.dstates_lo, this->state_row(chunk), p.K);
      float dD[8][4] = {};
      this->template over_keys<4>(dD, G, Kr, 0);
      scale_columns(G, this->decays);
      this->arrived();
      this->fetch_write(chunk - 1);
      const Queries queries = this->queries(chunk);
      if (queries.rows > 0) read(dD, G, queries.at(queries.rows - 1));
      this->arrived();
      this->fetch_read(chunk - 1);
      solve(dD, G, int64_t(chunk) * kChunk);
    }
    copy_wait<0>();
    if (p.dstate) this->write_state(G, p.dstate);
  }
};

}  // namespace

void channel_reverse(const DeltaProductBackward& p, const ChannelChunks& w, void* stream) {
  launch_sweep<Reverse>(p, w, stream);
}

}  // namespace lrnn::kernels::cuda
