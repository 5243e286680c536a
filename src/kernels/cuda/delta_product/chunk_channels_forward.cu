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
  using Problem = DeltaProductForward;
  const Problem& p;

  static __device__ __forceinline__ const Rows& values_of(const Problem& p) { return p.v; }

  // D = T diag(beta) (V - Kg S).
  __device__ __forceinline__ void solve(float (&D)[8][4], const State& S) const {
    float acc[8][4] = {};
    this->template over_keys<4>(acc, S, Kg, 0);
    const int row = this->rows_of_values.row;
    subtract_from_values<false>(acc, this->beta, true,
                                this->rows_of_values.base + lane_direct(row) + own * 2, row);
    this->times_triangle(D, acc, [&](auto& left, auto& right, const auto& a, int k, int n) {
      multiply(left, right, a, T.b_rows(k, n));
    });
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
        const typename Base::Outputs outputs(O[t]);
        if (r >= 0) outputs.store(o + r * p.o.token);
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

  __device__ __forceinline__ void walk(const ChannelChunks& w) const {
    State S;
    this->read_state(S, p.state);
    this->fetch_solve(0), this->fetch_read(0);
    for (int chunk = 0; chunk < this->chunks; ++chunk) {
      const int64_t first = int64_t(chunk) * kChunk;
      this->arrived();
      this->fetch_write(chunk);
      if (w.states && v0 < p.V)
        store_state<kSplit>(S, w.states, w.states_lo, this->state_row(chunk), p.K);
      float D[8][4];
      solve(D, S);
      if (p.error && v0 < p.V) this->keep_error(D, first, this->beta, p.error);
      this->arrived();
      this->fetch_solve(chunk + 1);
      if (p.q.data) read(D, S, this->queries(chunk));
      this->arrived();
      this->fetch_read(chunk + 1);
      advance(S, D);
    }
    copy_wait<0>();
    this->write_state(S, p.final_state);
  }
};

}  // namespace

void channel_forward(const DeltaProductForward& p, const ChannelChunks& w, void* stream) {
  launch_sweep<Forward>(p, w, stream);
}

}  // namespace lrnn::kernels::cuda
