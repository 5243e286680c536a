#include <type_traits>

#include "kernels/cuda/mlstm/chunk_backward.cuh"

// The gradients of the mLSTM cell in chunks of 64 tokens, from the last to the first: the kernel's
// walk and the launch. chunk_backward.cuh has the steps of a chunk.
namespace lrnn::kernels::cuda {
namespace {

// kStates: a state comes in or has a gradient, or there are several chunks.
template <Type kType, int kSize, bool kStates>
__global__ void __launch_bounds__(kMlstmThreads, kType == Type::kFloat32 ? 1 : 2)
    backward(const MlstmBackward p, const MlstmKept kept, const MlstmWide wide) {
  using At = MlstmBackwardLayout<kType, kSize, kStates>;
  using Shape = typename At::Shape;
  using Keys = typename Shape::Keys;
  using State = typename Shape::State;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ MlstmChunk chunk;
  __shared__ MlstmSums sums;
  const MlstmBackwardRun<kType, kSize, kStates> run{p,
                                                    kept,
                                                    MlstmPlace(p),
                                                    chunk,
                                                    sums,
                                                    Keys(memory + At::kQ),
                                                    Keys(memory + At::kK),
                                                    typename Shape::Values(memory + At::kV),
                                                    typename Shape::Slopes(memory + At::kD),
                                                    State(memory + At::kC),
                                                    State(memory + At::kG)};
  const MlstmPlace& at = run.at;
  const int64_t head = at.s * p.H + at.h;
  const bool has_keys = 16 * at.warp < kSize;
  const float scale = float(p.scale);
  const float m_first = p.m ? static_cast<const float*>(p.m)[head] : -INFINITY;
  float grad[Shape::kTiles][4] = {};
  float dm = p.dfinal_m ? static_cast<const float*>(p.dfinal_m)[head] : 0.f;
  if (kStates && has_keys) load_state<Shape>(p, at, p.dfinal_C, p.dfinal_n, grad);
  const int64_t chunks = (at.span.length + kMlstmRows - 1) / kMlstmRows;
  for (int64_t number = chunks - 1; number >= 0; --number) {
    const int64_t first = number * kMlstmRows, slot = (at.slot + number) * p.H + at.h;
    const int count = int(min(int64_t(kMlstmRows), at.span.length - first));
    MlstmGatePair pair;
    if (at.warp == 0)
      mlstm_gates(p, at, first, count, number > 0 ? kept.m[slot] : m_first, chunk, pair);
    load_rows<kType, kSize>(run.q, at, {p.q, first, p.K, count, wide.q});
    load_rows<kType, kSize>(run.k, at, {p.k, first, p.K, count, wide.k});
    load_rows<kType, kSize>(run.v, at, {p.v, first, p.V, count, wide.v});
    load_ones<Shape>(run.v);
    if (kStates && has_keys) {
      put_state<Shape>(run.G, at, grad, nullptr);
      float C[Shape::kTiles][4];
      if (number == 0) {
        load_state<Shape>(p, at, p.C, p.n, C);
      } else {
        const float* const from = kept.states + slot * kSize * Shape::kColumns;
#pragma unroll
        for (int j = 0; j < Shape::kTiles; ++j)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float2 x = *reinterpret_cast<const float2*>(
                from + (16 * at.warp + at.g + 8 * i) * Shape::kColumns + 8 * j + 2 * at.c);
            C[j][2 * i] = x.x, C[j][2 * i + 1] = x.y;
          }
      }
      put_state<Shape>(run.C, at, C, nullptr);
    }
    __syncthreads();
    run.slopes(first, count);
    __syncthreads();
    if (16 * at.warp < count) {
      run.by_readers(first, count, scale);
      run.by_writers(first, count, scale);
    }
    if (kStates && has_keys) run.state(count, grad);
    __syncthreads();
    if (at.warp == 0) run.gates(first, count, pair, dm);
    __syncthreads();
  }
  if (kStates && has_keys && p.dC) store_state<Shape>(p, at, p.dC, p.dn, grad);
  if (threadIdx.x == 0 && p.dm) static_cast<float*>(p.dm)[head] = dm;
}

}  // namespace

bool mlstm_chunk_fits(const MlstmInputs& p) {
  if (mlstm_chunk_size(p) == 0 || p.S * p.H >= (int64_t(1) << 31)) return false;
  size_t bytes = 0;
  with_mlstm_kind(p, true, [&](auto type, auto size, auto states) {
    bytes = MlstmBackwardLayout<type.value, size.value, states.value>::kBytes;
  });
  return bytes + sizeof(MlstmChunk) + sizeof(MlstmSums) <= size_t(chip().shared);
}

void mlstm_chunk_backward(const MlstmBackward& p, void* stream) {
  if (p.S * p.H == 0) return;
  const MlstmKept kept(p, static_cast<float*>(const_cast<void*>(p.states)));
  const bool states = p.C || p.dfinal_C || p.dfinal_n || p.T > kMlstmRows;
  with_mlstm_kind(p, states, [&](auto type, auto size, auto with) {
    const auto kernel = backward<type.value, size.value, with.value>;
    constexpr size_t kBytes = MlstmBackwardLayout<type.value, size.value, with.value>::kBytes;
    launch_mlstm(kernel, kBytes, p, kept, stream);
  });
}

}  // namespace lrnn::kernels::cuda
