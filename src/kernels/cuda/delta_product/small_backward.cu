#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/delta_product/small_gated.cuh"

// Backward of the recurrence for heads of up to 32 x 32 without a gate, in one walk from the end: a
// step adds k D^T to the state, so going back subtracts it again. What rounding makes of that is
// forgotten every 64 micro-steps, where forward kept the state. With S before the step and G the
// gradient of the state after it, y = G^T k and D = beta e:
//
//   dv = beta y,  dbeta = y.e,  dk = G D - S dv,  dq = scale S' do for the state S' after a token
//
// A gate cannot be undone like that unless it is 1: heads with another one take two walks. Those
// whose gates are all 1 have the bits of no gate.
namespace lrnn::kernels::cuda {
namespace {

using namespace tile;

struct WalkStage {
  Block k, q, d_o, e;
  float beta[kSteps];
};

template <class Io, bool kGate, bool kSingle> struct OneWalk : BackWalk<Io, kSingle> {
  using Base = BackWalk<Io, kSingle>;
  using Base::at, Base::column, Base::K, Base::lane, Base::p, Base::q, Base::scalars, Base::V;
  WalkStage* stage;

  __device__ __forceinline__ void ask_for(int64_t first) {
    Base::ask_for(stage[first / kSteps % 2], Walk<kSingle>(first, at.steps, p.N));
  }

  __device__ __forceinline__ void run(int64_t head, const float* kept) {
    const int64_t last = (at.steps - 1) / kSteps * kSteps;
    Io* dv = at.template rows<Io>(p.dv) + at.steps * p.dv.step + column;
    Io* dk = at.template rows<Io>(p.dk) + at.steps * p.dk.step + lane;
    Io* dq = at.template rows<Io>(p.dq) + at.span.length * p.dq.token + lane;
    float* slopes =
        kGate ? static_cast<float*>(p.dlog_gate) + at.gate_at(p, at.span.length) : nullptr;
    int step = int(p.N) - 1;
    Tile G, S;
    Base::read_end(G, head);
    if (kSingle && !q) {  // zeros instead of a branch, at which every step would wait
      for (int i = 0; i < 2 * kSteps; ++i)
        stage[i / kSteps].q[i % kSteps][lane] = stage[i / kSteps].d_o[i % kSteps][lane] = 0;
    }
    if (at.steps > 0) ask_for(last);
    copy_commit();
    for (int64_t first = last; first >= 0 && at.steps > 0; first -= kSteps) {
      WalkStage& here = stage[first / kSteps % 2];
      if (lane < kSteps) here.beta[lane] = scalars.beta;
      if (first > 0) ask_for(first - kSteps);
      copy_commit();
      if (first == last || (first + kSteps) % kSmallKept == 0)
        S.read(kept + first / kSmallKept * p.H * K * V, K, V);
      const int count = Base::arrived(here, first);
      float dbeta = 0;
#pragma unroll 2
      for (int i = count - 1; i >= 0; --i) {
        float x[kRows], d[kColumns], D[kColumns];
        if (kSingle || (q && step == p.N - 1)) {
          Base::add_output(G, here, i, d);
          const float got = S.along_columns(d);
          dq -= p.dq.token;
          if (q && lane < K) store_one(dq, got);
        }
        const float beta = here.beta[i], slope = Base::meet_error(G, here, i, x, d, D);
        if (lane == i) dbeta = slope;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) d[c] *= -beta, D[c] *= -beta;
        dv -= p.dv.step, dk -= p.dk.step;
        S.add(x, D);
        const float got = along_both(S, d, G, D);
        if (lane < K) store_one(dk, got);
        G.add(x, d);
#pragma unroll
        for (int c = 0; c < kColumns; ++c) d[c] = -d[c];
        if (lane < 8 && column < V) store_four(dv, d);
        if (!kSingle && --step >= 0) continue;
        step = int(p.N) - 1;
        if constexpr (kGate) {
          slopes -= p.H;
          const float slope = sum_lanes<32>(S.dot(G));
          if (lane == 0) *slopes = slope;
        }
      }
      if (lane < count) static_cast<float*>(p.dbeta)[at.beta_at(p, first + lane)] = dbeta;
      __syncwarp();
    }
    if (p.dstate) G.write(static_cast<float*>(p.dstate) + head * K * V, K, V);
  }
};

// Whether all gates of a head are 1.
__device__ __forceinline__ bool all_open(const DeltaProductInputs& p, const Head& at) {
  bool open = true;
  for (int64_t t = threadIdx.x; t < at.span.length; t += 32)
    open = open && static_cast<const float*>(p.log_gate)[at.gate_at(p, t)] == 0;
  return __all_sync(0xffffffffu, open);
}

template <class Io, bool kGate, bool kSingle>
__global__ void __launch_bounds__(32, kGate ? 1 : 16)
    small_gradients(DeltaProductBackward p, Rows dv_wide, Rows src_wide) {
  __shared__ union {
    WalkStage one[2];
    TwoWalksStage two[kGate ? 2 : 1];
  } stage;
  const int64_t head = blockIdx.x, s = head / p.H, h = head % p.H;
  const Head at(p, head);
  if constexpr (kGate)
    if (!all_open(p, at)) {
      TwoWalks<Io, kSingle> two{{p, at}, dv_wide, src_wide, stage.two, head};
      return two.run();
    }
  OneWalk<Io, kGate, kSingle> one{{p, at}, stage.one};
  one.run(head, static_cast<const float*>(p.states) +
                    (first_slot(p, s, kSmallKept) * p.H + h) * p.K * p.V);
}

}  // namespace

void small_backward(const DeltaProductBackward& p, float* workspace, void* stream) {
  if (p.S * p.H == 0) return;
  const auto wide = [&](float* data, int64_t width) {  // [B,H,T,N,width]
    const int64_t token = p.N * width;
    return Rows{data, p.H * p.T * token, token, width, p.T * token};
  };
  const bool kept = p.type == Type::kFloat32;
  const Rows dv = kept ? p.dv : wide(workspace, p.V);
  const Rows src = kept ? p.dk : wide(workspace + p.B * p.H * p.T * p.N * p.V, p.K);
  const auto launch = [&]<class Io, bool kGate>() {
    auto* kernel = p.N == 1 ? small_gradients<Io, kGate, true> : small_gradients<Io, kGate, false>;
    kernel<<<unsigned(p.S * p.H), 32, 0, static_cast<cudaStream_t>(stream)>>>(p, dv, src);
  };
  if (p.log_gate)
    kept ? launch.template operator()<float, true>() : launch.template operator()<Bf16, true>();
  else
    kept ? launch.template operator()<float, false>() : launch.template operator()<Bf16, false>();
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
