#include "kernels/cuda/delta_product/exact_gradients.cuh"

// exact_gradients.cu with a gate per key channel: a decay is then a vector over the channels, which
// multiplies keys and queries instead of pairs of micro-steps. A lane has a channel, a warp some
// micro-steps, and decays are multiplied up while it goes through the others.
//
// A gate's gradient is what was written before it, or came with S, times what is read of that at it
// or after it, or leaves with G. It is added up in this form, where every term has the gate itself
// for a factor, and not as the difference of what came and went: behind a strong decay it is small
// without cancelling, and a gate may be zero.
namespace lrnn::kernels::cuda {
namespace {

using namespace exact;

// Gates of a tile of channels, 1 where no token begins, and no gradients yet.
template <class R>
__device__ __forceinline__ void fill_gates(ChannelTiles<R>& t, const DeltaProductInputs& p,
                                           int64_t b, int64_t h, int count, int64_t k0,
                                           R (&gates)[kTile][kTile + 1]) {
  const R* const log_gate = static_cast<const R*>(p.log_gate);
#pragma unroll
  for (int n = 0; n < kTile * kTile / kThreads; ++n) {
    const int i = (threadIdx.x + n * kThreads) / kTile, c = threadIdx.x % kTile;
    const bool inside = i < count && t.begins[i] && k0 + c < p.K;
    gates[i][c] =
        inside ? exp_of(log_gate[((b * p.T + t.token[i]) * p.H + h) * p.K + k0 + c]) : R(1);
    t.dlog[i][c] = 0;
  }
}

template <class Io, class R>
__global__ void __launch_bounds__(kThreads)
    sum_channel_gradients(DeltaProductBackward p, int chunk, const R* y_all, const R* dstates,
                          int width) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& t = *reinterpret_cast<ChannelTiles<R>*>(memory);
  const ChunkValues<R> values(reinterpret_cast<R*>(memory + sizeof(t)), chunk, width);
  const int64_t slot = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const Slot at = slot_of(p, slot, chunk);
  if (at.count == 0) return;
  const Span span = span_of(p, at.s);
  const int count = at.count, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t matrix = p.K * p.V, b = span.b;
  const R scale = R(p.scale);
  fill_vectors(t, p, span, h, at.first, count);  // decays of 1
  __syncthreads();
  fill_pairs<Io>(t, p, span, at, h, chunk, y_all, values);
  auto& gates = t.decay;  // has been read

  const R* const S_all = static_cast<const R*>(p.states) + (slot * p.H + h) * matrix;
  const R* const G_all = dstates + (slot * p.H + h) * matrix;
  for (int64_t k0 = 0; k0 < p.K; k0 += kTile) {
    __syncthreads();
    fill_keys<Io>(t, p, b, h, count, k0);
    fill_gates(t, p, b, h, count, k0, gates);
    R both[kOwn] = {};
    const StateSums<R> sums(t, p, chunk, values, S_all, G_all, k0,
                            [&](int n, R x) { both[n] += x; });
#pragma unroll
    for (int n = 0; n < kOwn; ++n) {
      const R tail = sum_lanes<32>(both[n]);
      if (lane == 0) t.tail[warp + n * kWarps] = tail;
    }
    R dlog[kTile] = {};  // from what this warp's micro-steps read
#pragma unroll
    for (int n = 0; n < kOwn; ++n) {
      const int i = warp * kOwn + n;
      if (i >= count) continue;
      const R own_q = t.q[i][lane], own_k = t.k[i][lane], read_k = t.beta[i] * own_k;
      R dq = 0, er = 0, decay = 1, flow[kTile];
#pragma unroll
      for (int j = kTile - 1; j >= 0; --j) {
        if (j > i) continue;
        const R x = t.X[i][j], e = t.E[i][j], written = decay * t.k[j][lane];
        dq += x * written, er += e * written;
        flow[j] = (x * own_q + e * read_k) * written;
        decay *= gates[j][lane];
      }
      const R dq_state = scale * decay * sums.dq[n], er_state = -decay * sums.er[n];
      dq += dq_state, er += er_state;
      R before = own_q * dq_state + read_k * er_state;  // all that i reads of what was before m
#pragma unroll
      for (int m = 0; m < kTile; ++m) {
        if (m > i) continue;
        dlog[m] += before;
        before += flow[m];
      }
      R src = 0;
      decay = 1;
      for (int m = i; m < count; ++m) {
        if (m > i) decay *= gates[m][lane];
        src += decay * (t.X[m][i] * t.q[m][lane] + t.beta[m] * t.E[m][i] * t.k[m][lane]);
      }
      const R to_end = decay * sums.src[n];
      t.leave[i][lane] = own_k * to_end;
      if (k0 + lane >= p.K) continue;
      if (t.ends[i])
        store_as<R>(p.type, p.dq.data, row_at(p.dq, b, t.token[i], 0, h) + k0 + lane, dq);
      store_as<R>(p.type, p.dk.data, row_at(p.dk, b, t.token[i], t.step[i], h) + k0 + lane,
                  src + to_end + t.beta[i] * er);
    }
    if (!p.dlog_gate) continue;
    for (int w = 0; w < kWarps; ++w) {  // in their order
      if (warp == w)
#pragma unroll
        for (int m = 0; m < kTile; ++m) t.dlog[m][lane] += dlog[m];
      __syncthreads();
    }
    for (int n = 0; n < kOwn; ++n) {
      const int m = warp * kOwn + n;
      if (m >= count || !t.begins[m] || k0 + lane >= p.K) continue;
      R sum = t.tail[lane];
      for (int i = 0; i < count; ++i) sum *= gates[i][lane];
      for (int i = 0; i < m; ++i) sum += t.leave[i][lane];
      static_cast<R*>(p.dlog_gate)[((b * p.T + t.token[m]) * p.H + h) * p.K + k0 + lane] =
          sum + t.dlog[m][lane];
    }
  }
}

}  // namespace

void exact_channel_gradients(const DeltaProductBackward& p, int chunk, const void* y,
                             const void* dstates, void* stream) {
  const unsigned blocks = unsigned(chunk_slots(p, chunk) * p.H);
  const auto launch = [&]<class Io, class R>() {
    const size_t bytes = shared_bytes<R, ChannelTiles<R>>(p.V, chunk);
    auto* kernel = sum_channel_gradients<Io, R>;
    allow_shared(kernel, bytes);
    kernel<<<blocks, kThreads, bytes, static_cast<cudaStream_t>(stream)>>>(
        p, chunk, static_cast<const R*>(y), static_cast<const R*>(dstates), int(padded(p.V)));
  };
  with_types(p.type, launch);
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
