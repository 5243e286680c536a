#include <type_traits>

#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/delta_product/exact.cuh"

// The recurrence, forwards for the outputs and backwards for the gradient of the state.
namespace lrnn::kernels::cuda {
namespace {

// The values of this thread's column for a stage, shared out among its lanes, all loads at once.
template <int kLanes, class R, class From>
__device__ __forceinline__ void fill_column(R* to, int columns, int count, int lane, From&& from) {
  constexpr int kOwn = (kStage<R> + kLanes - 1) / kLanes;
  R x[kOwn];
#pragma unroll
  for (int u = 0; u < kOwn; ++u) {
    const int i = u * kLanes + lane;
    x[u] = from(min(i, max(count, 1) - 1));
  }
#pragma unroll
  for (int u = 0; u < kOwn; ++u) {
    const int i = u * kLanes + lane;
    if (i < count) to[i * columns] = x[u];
  }
}

template <class R, int kHeight, bool kChannels>
using StageOf = std::conditional_t<kChannels, ChannelStage<R, kHeight>, Stage<R, kHeight>>;

// kChannels: gates are one per key channel.
template <class Io, class R, int kRows, int kLanes, bool kChannels>
__global__ void __launch_bounds__(256) scan_forward(DeltaProductForward p, int chunk) {
  using C = Column<kRows, kLanes>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto& stage = *reinterpret_cast<StageOf<R, C::kHeight, kChannels>*>(memory);
  R* const v_rows = reinterpret_cast<R*>(memory + sizeof(stage));  // [kStage<R>, columns]
  const int lane = threadIdx.x % kLanes, column = threadIdx.x / kLanes;
  const int columns = blockDim.x / kLanes;
  const int64_t s = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const int64_t v = int64_t(blockIdx.y) * columns + column;
  const bool writes = v < p.V && lane == 0;
  const Span span = span_of(p, s);
  const int64_t steps = span.length * p.N, head = s * p.H + h, matrix = p.K * p.V;
  const R scale = R(p.scale);
  R* const error = static_cast<R*>(p.error) +
                   (p.error ? ((span.b * p.H + h) * p.T + span.t0) * p.N * p.V + v : 0);
  R* const states = static_cast<R*>(p.states);
  int64_t slot = states ? first_slot(p, s, chunk) : 0;
  int until_state = 0;

  R S[kRows];
  const R* initial = static_cast<const R*>(p.state);
  read_column<R, kRows, kLanes>(S, initial ? initial + head * matrix : nullptr, p.K, p.V, v, lane);
  for (int64_t first = 0; first < steps; first += kStage<R>) {
    const int count = int(min(int64_t(kStage<R>), steps - first));
    __syncthreads();
    fill<Io>(stage, p, p.v, p.o, {span, h, first, count});
    if constexpr (kChannels) fill_gates(stage, p, {span, h, first, count});
    fill_column<kLanes>(v_rows + column, columns, count, lane, [&](int i) {
      return load<R, Io>(p.v.data, stage.v_at[i] + min(v, p.V - 1));
    });
    __syncthreads();
    for (int i = 0; i < count; ++i) {
      if (states && until_state == 0) {
        write_column<R, kRows, kLanes>(S, states + (slot++ * p.H + h) * matrix, p.K, p.V, v, lane);
        until_state = chunk;
      }
      --until_state;
      if (p.log_gate && stage.begins[i]) decay<kLanes>(S, stage, i, lane);
      R k[kRows];
      read_row<kLanes>(k, stage.k[i], lane);
      const R e = v_rows[i * columns + column] - dot<kLanes>(S, k);
      if (p.error && writes) error[(first + i) * p.V] = e;
      add(S, k, stage.beta[i] * e);
      if (p.q.data && stage.ends[i]) {
        read_row<kLanes>(k, stage.q[i], lane);
        const R o = scale * dot<kLanes>(S, k);
        if (writes) store_as<R>(p.type, p.o.data, stage.o_at[i] + v, o);
      }
    }
  }
  write_column<R, kRows, kLanes>(S, static_cast<R*>(p.final_state) + head * matrix, p.K, p.V, v,
                                 lane);
}

// G is the gradient of the state. Leaves y = G^T k of every micro-step (the gradient of beta v) and
// G at the end of every chunk for the kernel that sums up the rest.
template <class Io, class R, int kRows, int kLanes, bool kChannels>
__global__ void __launch_bounds__(256)
    scan_backward(DeltaProductBackward p, int chunk, R* y_all, R* dstates) {
  using C = Column<kRows, kLanes>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto& stage = *reinterpret_cast<StageOf<R, C::kHeight, kChannels>*>(memory);
  R* const do_rows = reinterpret_cast<R*>(memory + sizeof(stage));
  const int lane = threadIdx.x % kLanes, column = threadIdx.x / kLanes;
  const int columns = blockDim.x / kLanes;
  const int64_t s = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const int64_t v = int64_t(blockIdx.y) * columns + column;
  const bool writes = v < p.V && lane == 0;
  const Span span = span_of(p, s);
  const int64_t steps = span.length * p.N, head = s * p.H + h, matrix = p.K * p.V;
  const R scale = R(p.scale);
  R* const y = y_all + ((span.b * p.H + h) * p.T + span.t0) * p.N * p.V + v;
  const int64_t slot = first_slot(p, s, chunk);

  R G[kRows];
  const R* final = static_cast<const R*>(p.d_final_state);
  read_column<R, kRows, kLanes>(G, final ? final + head * matrix : nullptr, p.K, p.V, v, lane);
  for (int64_t end = steps; end > 0; end -= kStage<R>) {
    const int64_t first = max(int64_t(0), end - kStage<R>);
    const int count = int(end - first);
    __syncthreads();
    fill<Io>(stage, p, p.dv, p.d_o, {span, h, first, count});
    if constexpr (kChannels) fill_gates(stage, p, {span, h, first, count});
    if (p.q.data)
      fill_column<kLanes>(do_rows + column, columns, count, lane, [&](int i) {
        return load<R, Io>(p.d_o.data, stage.o_at[i] + min(v, p.V - 1));
      });
    __syncthreads();
    for (int i = count - 1; i >= 0; --i) {
      const int64_t m = first + i;
      if (m == steps - 1 || ((m + 1) & (chunk - 1)) == 0)  // chunks are powers of two
        write_column<R, kRows, kLanes>(
            G, dstates + ((slot + uint32_t(m) / chunk) * p.H + h) * matrix, p.K, p.V, v, lane);
      R k[kRows];
      if (p.q.data && stage.ends[i]) {
        read_row<kLanes>(k, stage.q[i], lane);
        add(G, k, scale * do_rows[i * columns + column]);
      }
      read_row<kLanes>(k, stage.k[i], lane);
      const R dw = dot<kLanes>(G, k), de = stage.beta[i] * dw;
      if (writes) {
        y[m * p.V] = dw;
        store_as<R>(p.type, p.dv.data, stage.v_at[i] + v, de);
      }
      add(G, k, -de);
      if (p.log_gate && stage.begins[i]) decay<kLanes>(G, stage, i, lane);
    }
  }
  if (p.dstate)
    write_column<R, kRows, kLanes>(G, static_cast<R*>(p.dstate) + head * matrix, p.K, p.V, v, lane);
}

// Calls f.template operator()<Io, R, kRows, kLanes, kChannels>(grid, bytes of shared memory).
template <class F> void with_walk(const DeltaProductInputs& p, F&& f) {
  with_column(p.type, p.K, [&]<class Io, class R, int kRows, int kLanes>() {
    const Grid grid = exact_grid(p, kLanes);
    const auto call = [&]<bool kChannels>() {
      const size_t bytes = sizeof(StageOf<R, kRows * kLanes, kChannels>) +
                           kStage<R> * grid.threads / kLanes * sizeof(R);
      f.template operator()<Io, R, kRows, kLanes, kChannels>(grid, bytes);
    };
    p.channels ? call.template operator()<true>() : call.template operator()<false>();
  });
  check_launch("delta_product");
}

}  // namespace

void exact_forward(const DeltaProductForward& p, int chunk, void* stream) {
  if (p.S * p.H == 0) return;
  with_walk(p, [&]<class Io, class R, int kRows, int kLanes, bool kChannels>(const Grid& grid,
                                                                             size_t bytes) {
    auto* kernel = scan_forward<Io, R, kRows, kLanes, kChannels>;
    allow_shared(kernel, bytes);
    kernel<<<grid.blocks, grid.threads, bytes, static_cast<cudaStream_t>(stream)>>>(p, chunk);
  });
}

void exact_scan_backward(const DeltaProductBackward& p, int chunk, void* y, void* dstates,
                         void* stream) {
  with_walk(p, [&]<class Io, class R, int kRows, int kLanes, bool kChannels>(const Grid& grid,
                                                                             size_t bytes) {
    auto* kernel = scan_backward<Io, R, kRows, kLanes, kChannels>;
    allow_shared(kernel, bytes);
    kernel<<<grid.blocks, grid.threads, bytes, static_cast<cudaStream_t>(stream)>>>(
        p, chunk, static_cast<R*>(y), static_cast<R*>(dstates));
  });
}

}  // namespace lrnn::kernels::cuda
