#include "kernels/cuda/delta_product.h"
#include "kernels/cuda/exact_tile.cuh"

// The recurrence for heads of up to 32 x 32, where there are many: a warp is a head.
namespace lrnn::kernels::cuda {
namespace {

using namespace tile;

struct ForwardStage {
  Block k, q, v;
  float beta[kSteps], gate[kSteps];
};

template <class Io, bool kGate, bool kSingle>
__global__ void __launch_bounds__(32) small_scan(DeltaProductForward p) {
  __shared__ ForwardStage stage[2];
  const int64_t head = blockIdx.x;
  const Head at(p, head);
  const int lane = threadIdx.x, column = lane % 8 * kColumns, K = int(p.K), V = int(p.V);
  const bool writes = lane < 8 && column < V;
  const float scale = float(p.scale);
  const int64_t slot0 = first_slot(p, head / p.H, kSmallKept);
  const Io *const k = at.rows<Io>(p.k), *const v = at.rows<Io>(p.v), *const q = at.rows<Io>(p.q);
  Io* o = at.rows<Io>(p.o) + column;
  float* error = static_cast<float*>(p.error) + (p.error ? at.error * V + column : 0);

  Scalars scalars;
  const auto ask_for = [&](int64_t first) {
    ForwardStage& to = stage[first / kSteps % 2];
    const Walk<kSingle> walk(first, at.steps, p.N);
    ask(to.k, k, walk, p.k.token, p.k.step, K);
    ask(to.v, v, walk, p.v.token, p.v.step, V);
    if (q) ask_where_tokens_end(to.q, q, walk, p.q.token, K);
    scalars.ask(p, at, walk);
  };

  Tile S;
  S.read(p.state ? static_cast<const float*>(p.state) + head * K * V : nullptr, K, V);
  if (at.steps > 0) ask_for(0);
  copy_commit();
  int step = 0;
  for (int64_t first = 0; first < at.steps; first += kSteps) {
    ForwardStage& here = stage[first / kSteps % 2];
    scalars.put(here.beta, here.gate);
    if (first + kSteps < at.steps) ask_for(first + kSteps);
    copy_commit();
    copy_wait<1>();
    __syncwarp();
    unpack<Io>(here.k, here.q, here.v);
    const int count = int(min(int64_t(kSteps), at.steps - first));
#pragma unroll 4
    for (int i = 0; i < count; ++i) {
      if (kGate && (kSingle || step == 0)) S.scale(here.gate[i]);
      float x[kRows], e[kColumns], D[kColumns];
      read_rows(x, here.k[i]);
      read_columns(e, here.v[i]);
      S.along_rows(D, x);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) e[c] -= D[c], D[c] = here.beta[i] * e[c];
      if (p.error && writes) store_four(error, e);
      error += V;
      S.add(x, D);
      if (!kSingle && ++step < p.N) continue;
      step = 0;
      if (!q) continue;
      read_rows(x, here.q[i]);
      S.along_rows(D, x);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) D[c] *= scale;
      if (writes) store_four(o, D);
      o += p.o.token;
    }
    if (p.states && ((first + kSteps) % kSmallKept == 0 || first + kSteps >= at.steps))
      S.write(
          static_cast<float*>(p.states) + ((slot0 + first / kSmallKept) * p.H + head % p.H) * K * V,
          K, V);
    __syncwarp();
  }
  S.write(static_cast<float*>(p.final_state) + head * K * V, K, V);
}

// Calls f.template operator()<Io, kGate, kSingle>() for what these inputs need.
template <class F> void with_kind(const DeltaProductInputs& p, F&& f) {
  const auto with = [&]<class Io>() {
    if (p.log_gate)
      p.N == 1 ? f.template operator()<Io, true, true>() : f.template operator()<Io, true, false>();
    else
      p.N == 1 ? f.template operator()<Io, false, true>()
               : f.template operator()<Io, false, false>();
  };
  p.type == Type::kFloat32 ? with.template operator()<float>() : with.template operator()<Bf16>();
}

}  // namespace

bool small_fits(const DeltaProductInputs& p) {
  const int64_t piece = p.type == Type::kBFloat16 ? 8 : 4;  // elements in 16 bytes
  return p.type != Type::kFloat64 && p.K <= kSide && p.V <= kSide && p.K % piece == 0 &&
         p.V % piece == 0;
}

int64_t small_slots(const DeltaProductInputs& p) { return chunk_slots(p, kSmallKept); }

void small_forward(const DeltaProductForward& p, void* stream) {
  if (p.S * p.H == 0) return;
  with_kind(p, [&]<class Io, bool kGate, bool kSingle>() {
    small_scan<Io, kGate, kSingle>
        <<<unsigned(p.S * p.H), 32, 0, static_cast<cudaStream_t>(stream)>>>(p);
  });
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
