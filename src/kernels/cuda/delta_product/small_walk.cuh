#pragma once
#include "kernels/cuda/delta_product/small_tile.cuh"

// What every walk from the end through a small head begins a step with: its inputs, what the
// output adds to the gradient G of the state, and y = G^T k beside the error.
namespace lrnn::kernels::cuda::tile {

template <class Io, bool kSingle> struct BackWalk {
  const DeltaProductBackward& p;
  Head at;
  int lane = threadIdx.x, column = lane % 8 * kColumns, K = int(p.K), V = int(p.V);
  float scale = float(p.scale);
  const Io *k = at.rows<Io>(p.k), *q = at.rows<Io>(p.q),
           *d_o = p.q.data ? at.rows<Io>(p.d_o) : nullptr;
  const float* e = static_cast<const float*>(p.error) + at.error * V;
  Scalars scalars;

  template <class Stage>
  __device__ __forceinline__ void ask_for(Stage& to, const Walk<kSingle>& walk) {
    ask(to.k, k, walk, p.k.token, p.k.step, K);
    ask_even(to.e, e, walk, V, V);
    if (q) {
      ask_where_tokens_end(to.d_o, d_o, walk, p.d_o.token, V);
      ask_where_tokens_end(to.q, q, walk, p.q.token, K);
    }
    scalars.ask(p, at, walk);
  }

  // What was asked for has come, but for what is asked for next; returns how many micro-steps.
  template <class Stage> __device__ __forceinline__ int arrived(Stage& here, int64_t first) const {
    copy_wait<1>();
    __syncwarp();
    unpack<Io>(here.k, here.q, here.d_o);
    return int(min(int64_t(kSteps), at.steps - first));
  }

  // G += scale q do^T; leaves scale do in d.
  template <class Stage>
  __device__ __forceinline__ void add_output(Tile& G, const Stage& here, int i,
                                             float (&d)[kColumns]) const {
    float x[kRows];
    read_rows(x, here.q[i]);
    read_columns(d, here.d_o[i]);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) d[c] *= scale;
    G.add(x, d);
  }

  // Leaves k in x, y in d and the error in D; returns y.e.
  template <class Stage>
  __device__ __forceinline__ float meet_error(const Tile& G, const Stage& here, int i,
                                              float (&x)[kRows], float (&d)[kColumns],
                                              float (&D)[kColumns]) const {
    read_rows(x, here.k[i]);
    read_columns(D, here.e[i]);
    G.along_rows(d, x);
    float slope = 0;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) slope += d[c] * D[c];
    return sum_lanes<8>(slope);
  }

  // The gradient of the state after the last token.
  __device__ __forceinline__ void read_end(Tile& G, int64_t head) const {
    const float* const given = static_cast<const float*>(p.d_final_state);
    G.read(given ? given + head * K * V : nullptr, K, V);
  }
};

}  // namespace lrnn::kernels::cuda::tile
