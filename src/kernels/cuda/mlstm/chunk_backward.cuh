#pragma once
#include "kernels/cuda/mlstm/chunk.cuh"

// Chunks from the last to the first, with the gradient G of the state after the chunk. With S the
// weighted q k^T that reads v, D the gradient of what is read and w the weights:
//
//   dS = D v^T          dq = (w dS) k + exp(P) D C^T           C: the state before the chunk
//   dk = (w dS)^T q + u v G^T        dv = S^T D + u k G        u: weights in the state after it
//   G before = exp(P_end) G + (exp(P) q)^T D
//
// A warp has 16 tokens as rows t of dq, then 16 tokens as rows s of dk and dv, where it computes
// the products again, transposed: nothing passes between warps. The gradient of log w is dS S; what
// it means for the gates is a few sums along the chunk.
namespace lrnn::kernels::cuda {

template <Type kType, int kSize, bool kStates> struct MlstmBackwardLayout {
  using Shape = MlstmShape<kType, kSize>;
  static constexpr size_t kQ = 0, kK = kQ + Shape::Keys::kBytes, kV = kK + Shape::Keys::kBytes,
                          kD = kV + Shape::Values::kBytes, kC = kD + Shape::Slopes::kBytes,
                          kG = kC + (kStates ? Shape::State::kBytes : 0),
                          kBytes = kG + (kStates ? Shape::State::kBytes : 0);
};

// Per token: sums over the chunk, and the gradient of m in the size that h is divided by.
struct MlstmSums {
  float rows[kMlstmRows], columns[kMlstmRows];  // of dS S, over s and over t
  float before[kMlstmRows], after[kMlstmRows];  // what the states add: q . dq and k . dk of theirs
  float dm[kMlstmRows];
  float state[kMlstmWarps];  // <G, C exp(P_end)>, of a warp's keys
};

template <Type kType, int kSize, bool kStates> struct MlstmBackwardRun {
  using At = MlstmBackwardLayout<kType, kSize, kStates>;
  using Shape = typename At::Shape;
  const MlstmBackward& p;
  const MlstmKept& kept;
  const MlstmPlace at;
  MlstmChunk& chunk;
  MlstmSums& sums;
  const typename Shape::Keys q, k;
  const typename Shape::Values v;
  const typename Shape::Slopes D;
  const typename Shape::State C, G;

  // D for the warp's own rows; all loads are on their way before the first sum.
  __device__ __forceinline__ void slopes(int64_t first, int count) const {
    constexpr int kEach = kSize / 32;
    float dh[16][kEach], shrinks[16];
    const int own = 16 * at.warp + at.lane % 16;
    const float n_along = p.dh.data && own < count ? kept.along[at.token(p, first + own)] : 0.f;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int t = 16 * at.warp + i;
      const int64_t token = at.token(p, first + t),
                    from = row_at(p.dh, at.span.b, at.span.t0 + first + t, 0, at.h);
      shrinks[i] = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const int column = at.lane * kEach + j;
        const bool inside = p.dh.data && t < count && column < p.V;
        dh[i][j] = inside ? load_as<float>(kType, p.dh.data, from + column) : 0.f;
        shrinks[i] += dh[i][j] * (inside ? kept.read[token * p.V + column] : 0.f);
      }
    }
    const float eps = float(p.eps);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int t = 16 * at.warp + i;
      const float m = chunk.m[t], floor = fast_exp(-m),
                  along = __shfl_sync(0xffffffffu, n_along, i);
      // h = read / size, size = max(|n . q|, exp(-m)) + eps.
      const bool by_along = fabsf(along) >= floor;
      const float inverse = 1 / (fmaxf(fabsf(along), floor) + eps),
                  shrink = sum_lanes<32>(shrinks[i]) * inverse;
      if constexpr (kEach == 2) {
        D.put(t, 2 * at.lane, dh[i][0] * inverse, dh[i][1] * inverse);
      } else {
        const float right = __shfl_down_sync(0xffffffffu, dh[i][0], 1);
        if (at.lane % 2 == 0) D.put(t, at.lane, dh[i][0] * inverse, right * inverse);
      }
      if (at.lane < 8) {
        const float dalong = by_along ? (along < 0 ? shrink : -shrink) * inverse : 0.f;
        D.put(t, Shape::kOne + 2 * at.lane, at.lane == 0 ? dalong : 0.f, 0.f);
      }
      // exp(-m) / size, without an infinity where m is far below zero.
      if (at.lane == 0) sums.dm[t] = by_along ? 0.f : shrink / (fast_exp(m) * eps + 1);
    }
  }

  // Products of rows `row` .. of a with rows `column` .. of b.
  template <class A, class B>
  __device__ __forceinline__ void rows_by_rows(float (&out)[2][4], const A& a, int row, const B& b,
                                               int column, int size) const {
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) out[j][i] = 0;
#pragma unroll
    for (int i = 0; i < size; i += 16)
      multiply(out[0], out[1], a.a_rows(row, i), b.b_rows(i, column));
  }

  // dq of the warp's tokens.
  __device__ __forceinline__ void by_readers(int64_t first, int count, float scale) const {
    const int top = 16 * at.warp, row = top + at.g;
    const double P[2] = {chunk.P[row], chunk.P[row + 8]};
    float dq[Shape::kKeyTiles][4] = {}, sum[2] = {}, before[2] = {};
    if (kStates) {
#pragma unroll
      for (int i = 0; i < Shape::kColumns; i += 16) {
        const auto a = D.a_rows(top, i);
        add_rows(dq, a, C, i);
      }
      times_rows(dq, exp2_of(float(P[0])), exp2_of(float(P[1])));
      along_rows(dq, q, row, before);
    }
    for (int begin = 0; begin <= top; begin += 16) {
      float S[2][4], dS[2][4];
      rows_by_rows(S, q, top, k, begin, kSize);
      rows_by_rows(dS, D, top, v, begin, Shape::kColumns);
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int t = row + i / 2 * 8, s = begin + 8 * j + 2 * at.c + i % 2;
          const float w = s <= t ? mlstm_weight(chunk, P[i / 2], s, scale) : 0.f;
          sum[i / 2] += dS[j][i] * (S[j][i] * w);
          dS[j][i] *= w;
        }
      const auto a = as_fragment<Shape::kParts>(dS[0], dS[1]);
      add_columns(dq, a, k, begin);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sum[i] = over_columns(sum[i]), before[i] = over_columns(before[i]);
      if (at.c == 0) sums.rows[row + 8 * i] = sum[i], sums.before[row + 8 * i] = before[i];
    }
    store_rows(p.dq, first, count, dq, p.K);
  }

  // dk and dv of the warp's tokens.
  __device__ __forceinline__ void by_writers(int64_t first, int count, float scale) const {
    const int top = 16 * at.warp, row = top + at.g;
    float dk[Shape::kKeyTiles][4] = {}, dv[Shape::kTiles][4] = {}, sum[2] = {}, after[2] = {};
    if (kStates) {
#pragma unroll
      for (int i = 0; i < Shape::kColumns; i += 16) {
        const auto a = v.a_rows(top, i);
        add_rows(dk, a, G, i);
      }
#pragma unroll
      for (int i = 0; i < kSize; i += 16) {
        const auto a = k.a_rows(top, i);
        add_columns(dv, a, G, i);
      }
      const double end = chunk.P[kMlstmRows - 1];
      const float above = mlstm_weight(chunk, end, row, scale),
                  below = mlstm_weight(chunk, end, row + 8, scale);
      times_rows(dk, above, below), times_rows(dv, above, below);
      along_rows(dk, k, row, after);
    }
    for (int begin = top; begin < count; begin += 16) {
      float S[2][4], dS[2][4];
      rows_by_rows(S, k, top, q, begin, kSize);
      rows_by_rows(dS, v, top, D, begin, Shape::kColumns);
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int s = row + i / 2 * 8, t = begin + 8 * j + 2 * at.c + i % 2;
          const float w = s <= t ? mlstm_weight(chunk, chunk.P[t], s, scale) : 0.f;
          S[j][i] *= w;
          sum[i / 2] += dS[j][i] * S[j][i];
          dS[j][i] *= w;
        }
      const auto a = as_fragment<Shape::kParts>(dS[0], dS[1]);
      add_columns(dk, a, q, begin);
      const auto b = as_fragment<Shape::kParts>(S[0], S[1]);
      add_columns(dv, b, D, begin);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sum[i] = over_columns(sum[i]), after[i] = over_columns(after[i]);
      if (at.c == 0) sums.columns[row + 8 * i] = sum[i], sums.after[row + 8 * i] = after[i];
    }
    store_rows(p.dk, first, count, dk, p.K);
    store_rows(p.dv, first, count, dv, p.V);
  }

  // Sums of x times what lies in the same rows of `with`.
  template <int kTiles>
  __device__ __forceinline__ void along_rows(const float (&x)[kTiles][4],
                                             const typename Shape::Keys& with, int row,
                                             float (&sum)[2]) const {
#pragma unroll
    for (int j = 0; j < kTiles; ++j)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float2 y = with.get(row + 8 * i, 8 * j + 2 * at.c);
        sum[i] += x[j][2 * i] * y.x + x[j][2 * i + 1] * y.y;
      }
  }

  template <int kTiles>
  __device__ __forceinline__ void store_rows(const Rows& to, int64_t first, int count,
                                             const float (&x)[kTiles][4], int64_t size) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = 16 * at.warp + at.g + 8 * i;
      if (t >= count) continue;
      const int64_t row = row_at(to, at.span.b, at.span.t0 + first + t, 0, at.h);
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
        store_two<kType>(to.data, row, 8 * j + 2 * at.c, size, x[j][2 * i], x[j][2 * i + 1]);
    }
  }

  // The gradient of the state before the chunk, for the warp's keys, from that after it.
  __device__ __forceinline__ void state(int count, float (&grad)[Shape::kTiles][4]) const {
    const float decay = exp2_of(float(chunk.P[kMlstmRows - 1]));
    times_rows(grad, decay, decay);
    if (kStates) {
      float sum = 0;
#pragma unroll
      for (int j = 0; j < Shape::kTiles; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float2 x = C.get(16 * at.warp + at.g + 8 * i, 8 * j + 2 * at.c);
          sum += grad[j][2 * i] * x.x + grad[j][2 * i + 1] * x.y;
        }
      sum = sum_lanes<32>(sum);
      if (at.lane == 0) sums.state[at.warp] = sum;
    }
    for (int begin = 0; begin < count; begin += 16) {
      float weight[4];
#pragma unroll
      for (int i = 0; i < 4; ++i)
        weight[i] = exp2_of(float(chunk.P[begin + 2 * at.c + i % 2 + i / 2 * 8]));
      const auto a = times_columns<Shape::kParts>(q.a_columns(16 * at.warp, begin), weight);
      add_columns(grad, a, D, begin);
    }
  }

  // From the sums to di and df, by one warp; dm is the gradient of m after the chunk, then before.
  __device__ __forceinline__ void gates(int64_t first, int count, const MlstmGatePair& pair,
                                        float& dm) const {
    float input[2], forget[2], after[2], base[2];
#pragma unroll
    for (int j = 1; j >= 0; --j) {
      const int t = at.lane + 32 * j;
      const bool inside = t < count;
      after[j] = kStates && inside ? sums.after[t] : 0.f;
      input[j] = inside ? sums.columns[t] + after[j] : 0.f;
      // Pairs of a token from here on with one before it: those of readers from here on, but for
      // those whose writer is from here on too.
      forget[j] = inside ? sums.rows[t] - sums.columns[t] + (kStates ? sums.before[t] : 0.f) : 0.f;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const float later = __shfl_down_sync(0xffffffffu, forget[j], d);
        if (at.lane + d < 32) forget[j] += later;
      }
    }
    forget[0] += __shfl_sync(0xffffffffu, forget[1], 0);
    if (kStates) {
      float earlier[2] = {after[0], after[1]}, state = 0;
      running_sums(earlier, at.lane);
#pragma unroll
      for (int w = 0; w < kSize / 16; ++w) state += sums.state[w];
#pragma unroll
      for (int j = 0; j < 2; ++j) forget[j] += earlier[j] - after[j] + state;
    }
    unsigned took[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const bool inside = at.lane + 32 * j < count;
      base[j] = inside ? sums.dm[at.lane + 32 * j] - input[j] - forget[j] : 0.f;
      took[j] = __ballot_sync(0xffffffffu, inside && pair.took_input(j));
    }
#pragma unroll
    for (int j = 1; j >= 0; --j) {
      float mine = 0;
#pragma unroll
      for (int l = 31; l >= 0; --l) {
        const float kept_grad = __shfl_sync(0xffffffffu, forget[j], l);
        if (l + 32 * j >= count) continue;
        dm += __shfl_sync(0xffffffffu, base[j], l);
        if (at.lane == l) mine = dm;
        dm = kept_grad + (took[j] >> l & 1 ? 0.f : dm);
      }
      const int t = at.lane + 32 * j;
      if (t >= count) continue;
      const bool by_input = took[j] >> at.lane & 1;
      const int64_t token = at.token(p, first + t);
      static_cast<float*>(p.di)[token] = input[j] + (by_input ? mine : 0.f);
      static_cast<float*>(p.df)[token] =
          (forget[j] + (by_input ? 0.f : mine)) * sigmoid(-pair.f[j]);
    }
  }
};

}  // namespace lrnn::kernels::cuda
