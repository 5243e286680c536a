#include <algorithm>

#include "kernels/cuda/delta_product/exact_gradients.cuh"

// What remains of the gradients once every y = G^T k is known: sums over a chunk and over the
// states at its two ends, for all chunks at once. With the pseudo-values D_i = beta_i e_i, the
// decay A_ij from after j to after i, and S, G the state before and the gradient after the chunk:
//
//   X_ij = scale A_ij do_i.D_j (i >= j)          E_ij = - A_ij y_i.D_j (i > j)
//   dq_i = sum_j X_ij k_j + scale a_i S do_i     er_i = sum_j E_ij k_j - a_i S y_i
//   src_i = r_i G D_i + sum_j (X_ji q_j + beta_j E_ji k_j)
//   dk_i = src_i + beta_i er_i                   dbeta_i = y_i.e_i
//   dlog a_i = <G, S_end> + sum_{m >= i} (q_m.dq_m + beta_m k_m.er_m - k_m.src_m)
//
// where a_i is the decay from the start to i and r_i that from i to the end.
namespace lrnn::kernels::cuda {
namespace {

using namespace exact;

template <class Io, class R>
__global__ void __launch_bounds__(kThreads)
    sum_gradients(DeltaProductBackward p, int chunk, const R* y_all, const R* dstates, int width) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& t = *reinterpret_cast<Tiles<R>*>(memory);
  const ChunkValues<R> values(reinterpret_cast<R*>(memory + sizeof(Tiles<R>)), chunk, width);
  const int64_t slot = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const Slot at = slot_of(p, slot, chunk);
  if (at.count == 0) return;
  const Span span = span_of(p, at.s);
  const int count = at.count, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t matrix = p.K * p.V, b = span.b;
  const R scale = R(p.scale);
  fill_vectors(t, p, span, h, at.first, count);
  __syncthreads();
  fill_pairs<Io>(t, p, span, at, h, chunk, y_all, values);

  const R* const S_all = static_cast<const R*>(p.states) + (slot * p.H + h) * matrix;
  const R* const G_all = dstates + (slot * p.H + h) * matrix;
  R slope[kOwn] = {}, both_ends = 0, at_end = 0;
  for (int64_t k0 = 0; k0 < p.K; k0 += kTile) {
    __syncthreads();
    fill_keys<Io>(t, p, b, h, count, k0);
    StateSums<R> sums(t, p, chunk, values, S_all, G_all, k0, [&](int, R x) { both_ends += x; });
    auto& [dq, er, src] = sums;
#pragma unroll
    for (int n = 0; n < kOwn; ++n) {
      const int i = warp * kOwn + n;
      if (i >= count) continue;
      dq[n] *= scale * t.before[i], er[n] *= -t.before[i], src[n] *= t.after[i];
      const R own_k = t.k[i][lane];
      at_end += own_k * src[n];
      for (int j = 0; j < count; ++j) {  // X and E are zero above the diagonal
        dq[n] += t.X[i][j] * t.k[j][lane];
        er[n] += t.E[i][j] * t.k[j][lane];
        src[n] += t.X[j][i] * t.q[j][lane] + t.beta[j] * t.E[j][i] * t.k[j][lane];
      }
      slope[n] += t.q[i][lane] * dq[n] + t.beta[i] * own_k * er[n] - own_k * src[n];
      if (k0 + lane >= p.K) continue;
      if (t.ends[i])
        store_as<R>(p.type, p.dq.data, row_at(p.dq, b, t.token[i], 0, h) + k0 + lane, dq[n]);
      store_as<R>(p.type, p.dk.data, row_at(p.dk, b, t.token[i], t.step[i], h) + k0 + lane,
                  src[n] + t.beta[i] * er[n]);
    }
  }
  if (!p.dlog_gate) return;
#pragma unroll
  for (int n = 0; n < kOwn; ++n) {
    slope[n] = sum_lanes<32>(slope[n]);
    if (lane == 0) t.slope[warp * kOwn + n] = slope[n];
  }
  at_end = sum_lanes<32>(at_end + t.before[kTile - 1] * both_ends);
  if (lane == 0) t.ends_dot[warp] = at_end;
  __syncthreads();
  if (threadIdx.x == 0) {
    R sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += t.ends_dot[w];
    for (int i = count - 1; i >= 0; --i) {
      sum += t.slope[i];
      if (t.begins[i]) static_cast<R*>(p.dlog_gate)[(b * p.T + t.token[i]) * p.H + h] = sum;
    }
  }
}

}  // namespace

// The longest that fits, with a gate per key channel, too, so that all gates have one.
template <class R> int longest_chunk(int64_t V) {
  constexpr size_t kMost = 200 * 1024, kMore = sizeof(ChannelTiles<R>) - sizeof(Tiles<R>);
  const size_t most = std::min(kMost, size_t(chip().shared) - kMore);
  for (int chunk = kTile; chunk > 0; chunk /= 2)
    if (shared_bytes<R>(V, chunk) <= most) return chunk;
  return 0;
}
int exact_chunk(int64_t V, Type type) {
  return type == Type::kFloat64 ? longest_chunk<double>(V) : longest_chunk<float>(V);
}

int64_t exact_slots(const DeltaProductInputs& p, int chunk) { return chunk_slots(p, chunk); }

void exact_scan_backward(const DeltaProductBackward& p, int chunk, void* y, void* dstates,
                         void* stream);
void exact_channel_gradients(const DeltaProductBackward& p, int chunk, const void* y,
                             const void* dstates, void* stream);

void exact_backward(const DeltaProductBackward& p, int chunk, void* y, void* dstates,
                    void* stream) {
  if (p.S * p.H == 0) return;
  exact_scan_backward(p, chunk, y, dstates, stream);
  const int64_t blocks = chunk_slots(p, chunk) * p.H;
  if (blocks == 0) return;
  if (p.channels) return exact_channel_gradients(p, chunk, y, dstates, stream);
  const auto launch = [&]<class Io, class R>() {
    const size_t bytes = shared_bytes<R>(p.V, chunk);
    allow_shared(sum_gradients<Io, R>, bytes);
    sum_gradients<Io, R><<<unsigned(blocks), kThreads, bytes, static_cast<cudaStream_t>(stream)>>>(
        p, chunk, static_cast<const R*>(y), static_cast<const R*>(dstates), int(padded(p.V)));
  };
  with_types(p.type, launch);
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
