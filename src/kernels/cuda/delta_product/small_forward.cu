#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/delta_product/small_tile.cuh"

// The recurrence for heads of up to 32 x 32, where there are many: a warp is a head, and every lane
// has a column of the state. Columns know nothing of each other, so a step has no shuffles: all
// lanes read the same key and the same query from shared memory.
namespace lrnn::kernels::cuda {
namespace {

using namespace tile;

struct Column {
  float x[kSide];

  // Four rows at a time: K is a multiple of four.
  __device__ __forceinline__ void read(const float* from, int K, int V) {
    const bool mine = from && int(threadIdx.x) < V;
    from += threadIdx.x;
#pragma unroll
    for (int r = 0; r < kSide; r += 4, from += 4 * V)
#pragma unroll
      for (int i = 0; i < 4; ++i) x[r + i] = mine && r < K ? from[i * V] : 0.f;
  }
  __device__ __forceinline__ void write(float* to, int K, int V) const {
    if (int(threadIdx.x) >= V) return;
    to += threadIdx.x;
#pragma unroll
    for (int r = 0; r < kSide; r += 4, to += 4 * V) {
      if (r >= K) return;
#pragma unroll
      for (int i = 0; i < 4; ++i) to[i * V] = x[r + i];
    }
  }
  __device__ __forceinline__ float dot(const float (&k)[kSide]) const {
    float sum[4];  // four chains wait less
#pragma unroll
    for (int r = 0; r < kSide; ++r) sum[r % 4] = r < 4 ? x[r] * k[r] : sum[r % 4] + x[r] * k[r];
    return sum[0] + sum[1] + (sum[2] + sum[3]);
  }
  __device__ __forceinline__ void add(const float (&k)[kSide], float d) {
#pragma unroll
    for (int r = 0; r < kSide; ++r) x[r] += k[r] * d;
  }
  __device__ __forceinline__ void scale(float a) {
#pragma unroll
    for (int r = 0; r < kSide; ++r) x[r] *= a;
  }
};

__device__ __forceinline__ void read_row(float (&x)[kSide], const float* from) {
#pragma unroll
  for (int r = 0; r < kSide; r += 4) {
    float four[4];
    load_four(from + r, four);
#pragma unroll
    for (int i = 0; i < 4; ++i) x[r + i] = four[i];
  }
}

struct ForwardStage {
  Block k, q, v;
  float beta[kSteps], gate[kSteps];
};

template <class Io, bool kGate, bool kSingle>
__global__ void __launch_bounds__(32, 16) small_scan(DeltaProductForward p) {
  __shared__ ForwardStage stage[2];
  const int64_t head = blockIdx.x;
  const Head at(p, head);
  const int lane = threadIdx.x, K = int(p.K), V = int(p.V);
  const float scale = float(p.scale);
  const int64_t slot0 = first_slot(p, head / p.H, kSmallKept);
  const Io *const k = at.rows<Io>(p.k), *const v = at.rows<Io>(p.v), *const q = at.rows<Io>(p.q);
  const bool outputs = q && lane < V, errors = p.error && lane < V;
  Io* o = at.rows<Io>(p.o) + lane;
  float* error = static_cast<float*>(p.error) + (p.error ? at.error * V + lane : 0);

  Scalars scalars;
  const auto ask_for = [&](int64_t first) {
    ForwardStage& to = stage[first / kSteps % 2];
    const Walk<kSingle> walk(first, at.steps, p.N);
    ask(to.k, k, walk, p.k.token, p.k.step, K);
    ask(to.v, v, walk, p.v.token, p.v.step, V);
    if (q) ask_where_tokens_end(to.q, q, walk, p.q.token, K);
    scalars.ask(p, at, walk);
  };

  Column S;
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
      float x[kSide];
      read_row(x, here.k[i]);
      const float e = here.v[i][lane] - S.dot(x);
      if (errors) *error = e;
      error += V;
      S.add(x, here.beta[i] * e);
      if (!kSingle && ++step < p.N) continue;
      step = 0;
      read_row(x, here.q[i]);  // of no meaning without q: a branch would keep the next step waiting
      const float got = scale * S.dot(x);
      if (outputs) store_one(o, got);
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
