#include <type_traits>

#include "kernels/cuda/mlstm/chunk.cuh"

// A warp has 16 tokens of a chunk for what is read, and 16 keys of the state for what is written.
namespace lrnn::kernels::cuda {
namespace {

template <Type kType, int kSize, bool kStates> struct Layout {
  using Shape = MlstmShape<kType, kSize>;
  static constexpr size_t kQ = 0, kK = kQ + Shape::Keys::kBytes, kV = kK + Shape::Keys::kBytes,
                          kState = kV + Shape::Values::kBytes,
                          kBytes = kState + (kStates ? Shape::State::kBytes : 0);
};

// kStates: a state comes in, or there are several chunks.
template <Type kType, int kSize, bool kStates>
__global__ void __launch_bounds__(kMlstmThreads, 2)
    forward(const MlstmForward p, const MlstmKept kept, const MlstmWide wide) {
  using At = Layout<kType, kSize, kStates>;
  using Shape = typename At::Shape;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ MlstmChunk chunk;
  const typename Shape::Keys q(memory + At::kQ), k(memory + At::kK);
  const typename Shape::Values v(memory + At::kV);
  const typename Shape::State before(memory + At::kState);
  const MlstmPlace at(p);
  const int64_t head = at.s * p.H + at.h;
  const bool has_keys = 16 * at.warp < kSize;
  const float scale = float(p.scale), eps = float(p.eps);
  float C[Shape::kTiles][4] = {}, m = p.m ? static_cast<const float*>(p.m)[head] : -INFINITY;
  if (kStates && has_keys) {
    load_state<Shape>(p, at, p.C, p.n, C);
    put_state<Shape>(before, at, C, nullptr);
  }
  for (int64_t first = 0; first < at.span.length; first += kMlstmRows) {
    const int count = int(min(int64_t(kMlstmRows), at.span.length - first));
    if (at.warp == 0) {
      MlstmGatePair pair;
      m = mlstm_gates(p, at, first, count, m, chunk, pair);
    }
    load_rows<kType, kSize>(q, at, {p.q, first, p.K, count, wide.q});
    load_rows<kType, kSize>(k, at, {p.k, first, p.K, count, wide.k});
    load_rows<kType, kSize>(v, at, {p.v, first, p.V, count, wide.v});
    load_ones<Shape>(v);
    __syncthreads();
    const int row = 16 * at.warp + at.g;  // and row + 8
    if (16 * at.warp < count) {
      const double P[2] = {chunk.P[row], chunk.P[row + 8]};
      float out[Shape::kTiles][4] = {};
      if (kStates) {
#pragma unroll
        for (int i = 0; i < kSize; i += 16) {
          const auto a = q.a_rows(16 * at.warp, i);
          add_columns(out, a, before, i);
        }
        times_rows(out, exp2_of(float(P[0])), exp2_of(float(P[1])));
      }
      for (int begin = 0; begin <= 16 * at.warp; begin += 16) {
        float S[2][4] = {};
#pragma unroll
        for (int i = 0; i < kSize; i += 16)
          multiply(S[0], S[1], q.a_rows(16 * at.warp, i), k.b_rows(i, begin));
#pragma unroll
        for (int j = 0; j < 2; ++j)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int t = row + i / 2 * 8, s = begin + 8 * j + 2 * at.c + i % 2;
            S[j][i] = s <= t ? S[j][i] * mlstm_weight(chunk, P[i / 2], s, scale) : 0.f;
          }
        const auto a = as_fragment<Shape::kParts>(S[0], S[1]);
        add_columns(out, a, v, begin);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int t = row + 8 * i;
        // The column of n is with the first lane of four.
        const float along = __shfl_sync(0xffffffffu, out[Shape::kOne / 8][2 * i], at.lane & ~3);
        if (t >= count) continue;
        const float size = fmaxf(fabsf(along), fast_exp(-chunk.m[t])) + eps, inverse = 1 / size;
        const int64_t token = at.token(p, first + t),
                      to = row_at(p.h, at.span.b, at.span.t0 + first + t, 0, at.h);
#pragma unroll
        for (int j = 0; j < Shape::kKeyTiles; ++j) {
          const int column = 8 * j + 2 * at.c;
          store_two<kType>(p.h.data, to, column, p.V, out[j][2 * i] * inverse,
                           out[j][2 * i + 1] * inverse);
          if (p.states)
            store_two<Type::kFloat32>(kept.read, token * p.V, column, p.V, out[j][2 * i],
                                      out[j][2 * i + 1]);
        }
        if (p.states && at.c == 0) kept.along[token] = along;
      }
    }
    if (has_keys) {  // the state after the chunk
      const double end = chunk.P[kMlstmRows - 1];
      const float decay = exp2_of(float(end));
      times_rows(C, decay, decay);
      for (int begin = 0; begin < count; begin += 16) {
        float weight[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          weight[i] = mlstm_weight(chunk, end, begin + 2 * at.c + i % 2 + i / 2 * 8, scale);
        const auto a = times_columns<Shape::kParts>(k.a_columns(16 * at.warp, begin), weight);
        add_columns(C, a, v, begin);
      }
    }
    __syncthreads();
    if (!kStates || first + kMlstmRows >= at.span.length) continue;
    const int64_t slot = (at.slot + first / kMlstmRows + 1) * p.H + at.h;
    if (has_keys)
      put_state<Shape>(before, at, C,
                       p.states ? kept.states + slot * kSize * Shape::kColumns : nullptr);
    if (p.states && threadIdx.x == 0) kept.m[slot] = m;
  }
  if (has_keys) store_state<Shape>(p, at, p.final_C, p.final_n, C);
  if (threadIdx.x == 0) static_cast<float*>(p.final_m)[head] = m;
}

}  // namespace

int64_t mlstm_chunk_kept(const MlstmInputs& p) { return MlstmKept(p, nullptr).total; }

void mlstm_chunk_forward(const MlstmForward& p, void* stream) {
  if (p.S * p.H == 0) return;
  const MlstmKept kept(p, static_cast<float*>(p.states));
  with_mlstm_kind(p, p.C || p.T > kMlstmRows, [&](auto type, auto size, auto states) {
    const auto kernel = forward<type.value, size.value, states.value>;
    constexpr size_t kBytes = Layout<type.value, size.value, states.value>::kBytes;
    launch_mlstm(kernel, kBytes, p, kept, stream);
  });
}

}  // namespace lrnn::kernels::cuda
