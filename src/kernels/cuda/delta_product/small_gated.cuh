#pragma once
#include "kernels/cuda/delta_product/small_walk.cuh"

// Backward of a small head with a gate, in two walks: first from the end for the gradient G of the
// state, then from the start for the state S itself, so that no gate is divided by. With Ŝ the
// state after the gate, D = beta e and y = G^T k:
//
//   from the end     dv = beta y,  dbeta = y.e,  src = G D
//   from the start   dk = src + er with er = -Ŝ dv,  dq = scale S do
//   dlog a           = <G_end, S_end> + the sum from here on of q.dq + k.er - k.src
namespace lrnn::kernels::cuda::tile {

struct TwoWalksStage {
  Block k, q, d_o, e, dv, src;
  float beta[kSteps], gate[kSteps];
};

// dv and src are kept in float32: in dv and dk themselves where they are that. Their rows and those
// of the errors lie one after the other.
template <class Io, bool kSingle> struct TwoWalks : BackWalk<Io, kSingle> {
  using Base = BackWalk<Io, kSingle>;
  using Base::at, Base::column, Base::K, Base::lane, Base::p, Base::q, Base::scalars, Base::scale,
      Base::V;
  const Rows &dv_wide, &src_wide;
  TwoWalksStage* stage;
  int64_t head;

  __device__ __forceinline__ void ask_for(int64_t first, bool states) {
    TwoWalksStage& to = stage[first / kSteps % 2];
    const Walk<kSingle> walk(first, at.steps, p.N);
    Base::ask_for(to, walk);
    if (states) {
      ask_even(to.dv, at.template rows<float>(dv_wide), walk, dv_wide.step, V);
      ask_even(to.src, at.template rows<float>(src_wide), walk, src_wide.step, K);
    }
  }

  __device__ __forceinline__ void run() {
    from_the_end();
    __threadfence();  // what its lanes wrote, the others now read
    __syncwarp();
    copy_wait<0>();
    from_the_start();
  }

  __device__ __forceinline__ void from_the_end() {
    constexpr bool kWide = sizeof(Io) == 4;
    const bool writes = lane < 8 && column < V;
    int step = int(p.N) - 1;
    Tile G;
    Base::read_end(G, head);
    const int64_t last = (at.steps - 1) / kSteps * kSteps;
    Io* dv = at.template rows<Io>(p.dv) + at.steps * p.dv.step + column;
    float* dv_kept = at.template rows<float>(dv_wide) + at.steps * dv_wide.step + column;
    float* src_kept = at.template rows<float>(src_wide) + at.steps * src_wide.step + lane;
    if (at.steps > 0) ask_for(last, false);
    copy_commit();
    for (int64_t first = last; first >= 0 && at.steps > 0; first -= kSteps) {
      TwoWalksStage& here = stage[first / kSteps % 2];
      scalars.put(here.beta, here.gate);
      if (first > 0) ask_for(first - kSteps, false);
      copy_commit();
      const int count = Base::arrived(here, first);
      float dbeta = 0;
#pragma unroll 2
      for (int i = count - 1; i >= 0; --i) {
        float x[kRows], d[kColumns], D[kColumns];
        if (q && (kSingle || step == p.N - 1)) Base::add_output(G, here, i, d);
        const float beta = here.beta[i], slope = Base::meet_error(G, here, i, x, d, D);
        if (lane == i) dbeta = slope;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) d[c] *= beta, D[c] *= beta;
        const float src = G.along_columns(D);
        src_kept -= src_wide.step, dv -= p.dv.step, dv_kept -= dv_wide.step;
        if (lane < K) *src_kept = src;
        if (writes) store_four(dv, d);
        if (!kWide && writes) store_four(dv_kept, d);
#pragma unroll
        for (int c = 0; c < kColumns; ++c) d[c] = -d[c];
        G.add(x, d);
        if (kSingle || step == 0) G.scale(here.gate[i]);
        if (!kSingle && --step < 0) step = int(p.N) - 1;
      }
      if (lane < count) static_cast<float*>(p.dbeta)[at.beta_at(p, first + lane)] = dbeta;
      __syncwarp();
    }
    if (p.dstate) G.write(static_cast<float*>(p.dstate) + head * K * V, K, V);
  }

  __device__ __forceinline__ void from_the_start() {
    int step = 0;
    float slope = 0;
    Tile S;
    S.read(p.state ? static_cast<const float*>(p.state) + head * K * V : nullptr, K, V);
    Io* dk = at.template rows<Io>(p.dk) + lane;
    Io* dq = at.template rows<Io>(p.dq) + lane;
    float* slopes = static_cast<float*>(p.dlog_gate) + at.gate_at(p, 0);
    if (at.steps > 0) ask_for(0, true);
    copy_commit();
    for (int64_t first = 0; first < at.steps; first += kSteps) {
      TwoWalksStage& here = stage[first / kSteps % 2];
      scalars.put(here.beta, here.gate);
      if (first + kSteps < at.steps) ask_for(first + kSteps, true);
      copy_commit();
      copy_wait<1>();
      __syncwarp();
      unpack<Io>(here.k, here.q, here.d_o);
      const int count = int(min(int64_t(kSteps), at.steps - first));
#pragma unroll 2
      for (int i = 0; i < count; ++i) {
        if (kSingle || step == 0) S.scale(here.gate[i]);
        float x[kRows], d[kColumns];
        read_columns(d, here.dv[i]);
        const float er = -S.along_columns(d), src = here.src[i][lane];
        if (lane < K) store_one(dk, src + er);
        dk += p.dk.step;
        if (lane < K) slope += here.k[i][lane] * (er - src);
        read_rows(x, here.k[i]);
        read_columns(d, here.e[i]);
#pragma unroll
        for (int c = 0; c < kColumns; ++c) d[c] *= here.beta[i];
        S.add(x, d);
        if (!kSingle && ++step < p.N) continue;
        step = 0;
        if (q) {
          read_columns(d, here.d_o[i]);
          const float got = scale * S.along_columns(d);
          if (lane < K) store_one(dq, got);
          dq += p.dq.token;
          if (lane < K) slope += here.q[i][lane] * got;
        }
        slope = sum_lanes<32>(slope);
        if (lane == 0) *slopes = slope;
        slope = 0, slopes += p.H;
      }
      __syncwarp();
    }
    sum_up(S);
  }

  // Every token's slope becomes the sum of all from there on.
  __device__ __forceinline__ void sum_up(const Tile& S) {
    float sum = 0;
    if (p.d_final_state) {
      Tile G;
      Base::read_end(G, head);
      sum = sum_lanes<32>(S.dot(G));
    }
    __threadfence_block();
    __syncwarp();
    float* const slopes = static_cast<float*>(p.dlog_gate);
    for (int64_t end = at.span.length; end > 0; end -= 32) {
      const int64_t t = end - 1 - lane;
      float x = t >= 0 ? slopes[at.gate_at(p, t)] : 0.f;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const float later = __shfl_up_sync(0xffffffffu, x, d);
        if (lane >= d) x += later;
      }
      if (t >= 0) slopes[at.gate_at(p, t)] = sum + x;
      sum += __shfl_sync(0xffffffffu, x, 31);
    }
  }
};

}  // namespace lrnn::kernels::cuda::tile
