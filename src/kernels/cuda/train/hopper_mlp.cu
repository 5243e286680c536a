#include "kernels/cuda/tile/copy.cuh"
#include "kernels/cuda/tile/functions.cuh"
#include "kernels/cuda/tile/wgmma.cuh"
#include "kernels/cuda/train/gated_mlp.h"

// A block has 128 rows, a warp group 64 of them. The matrices come by in chunks of 64 hidden units,
// one ahead; a chunk's hidden units go from one product to the next in registers.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kRows = 128, kThreads = 256, kUnits = 64;

template <int D> struct Layout {                       // in bytes
  static constexpr int kInput = D / 64 * kRows * 128;  // rows of x or dy as swizzled tiles
  static constexpr int gate = 0, up = gate + D * kUnits * 2, down = up + D * kUnits * 2,
                       kStage = down + D * kUnits * 2;
  static constexpr int all(int inputs) { return inputs * kInput + 2 * kStage; }
};

// Rows of this block, outside zeros.
template <int D>
__device__ __forceinline__ void fetch_input(uint32_t to, const uint16_t* from, int64_t stride,
                                            int inside) {
  fetch_tiles<D, kRows, kThreads>(int(threadIdx.x), to, from, stride, inside, D);
}
template <int D>
__device__ __forceinline__ void fetch_weights(uint32_t stage, const GatedMlp& p, int64_t unit) {
  using L = Layout<D>;
  const int rank = int(threadIdx.x);
  fetch_tiles<D, kUnits, kThreads>(rank, stage + L::gate, p.gate + unit * D, D, kUnits, D);
  fetch_tiles<D, kUnits, kThreads>(rank, stage + L::up, p.up + unit * D, D, kUnits, D);
  fetch_tiles<kUnits, D, kThreads>(rank, stage + L::down, p.down + unit, p.hidden, D, kUnits);
}

// Waits for the weights of a chunk and asks for those of the next; where they lie.
template <int D>
__device__ __forceinline__ uint32_t next_stage(uint32_t stages, const GatedMlp& p, int chunk,
                                               int chunks) {
  using L = Layout<D>;
  copy_wait<0>();
  wgmma::publish();
  __syncthreads();
  if (chunk + 1 < chunks)
    fetch_weights<D>(stages + (chunk + 1) % 2 * L::kStage, p, int64_t(chunk + 1) * kUnits);
  copy_commit();
  return stages + chunk % 2 * L::kStage;
}

// acc [64 rows, 64 units] = X W^T for the rows of this warp group and rows of units W, or X W for
// kAcross and rows of outputs W.
template <int D, bool kAcross>
__device__ __forceinline__ void from_input(float (&acc)[8][4], uint32_t input, uint32_t weights) {
  const uint32_t own = input + threadIdx.x / 128 * 64 * 128;
#pragma unroll
  for (int k = 0; k < D / 16; ++k) {
    const uint64_t a = wgmma::rows_as_n(own + k / 4 * kRows * 128) + k % 4 * 2;
    const uint64_t b = kAcross ? wgmma::rows_as_k(weights + k * 16 * 128, 0)
                               : wgmma::rows_as_n(weights + k / 4 * kTileBytes) + k % 4 * 2;
    if (k == 0)
      wgmma::multiply<false, kAcross, true>(acc, a, b);
    else
      wgmma::multiply<false, kAcross, false>(acc, a, b);
  }
}

// Of four words of four tiles a lane keeps one tile's and gets its neighbours' words of it, so that
// it has 16 bytes of a row.
__device__ __forceinline__ uint4 across_lanes(const uint32_t (&w)[4]) {
  const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
  uint32_t pairs[2][2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? w[2 * i] : w[2 * i + 1], 1);
    pairs[i][0] = odd ? other : w[2 * i], pairs[i][1] = odd ? w[2 * i + 1] : other;
  }
  const uint32_t x = __shfl_xor_sync(0xffffffffu, high ? pairs[0][0] : pairs[1][0], 2),
                 y = __shfl_xor_sync(0xffffffffu, high ? pairs[0][1] : pairs[1][1], 2);
  return high ? make_uint4(x, y, pairs[1][0], pairs[1][1])
              : make_uint4(pairs[0][0], pairs[0][1], x, y);
}
// Accumulators to rows of bfloat16: `to` is the block's first row.
template <int kTiles>
__device__ __forceinline__ void store_rows(const float (&x)[kTiles][4], uint16_t* to,
                                           int64_t stride, int inside) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = threadIdx.x / 32 * 16 + half * 8 + lane / 4;
#pragma unroll
    for (int t = 0; t < kTiles; t += 4) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) words[i] = pack(x[t + i][2 * half], x[t + i][2 * half + 1]);
      const uint4 out = across_lanes(words);
      if (row < inside) *reinterpret_cast<uint4*>(to + row * stride + (t + lane % 4) * 8) = out;
    }
  }
}

template <int D>
__global__ void __launch_bounds__(kThreads, 1) mlp_forward(const GatedMlp p, uint16_t* y) {
  extern __shared__ __align__(1024) unsigned char memory[];
  using L = Layout<D>;
  const int64_t first = int64_t(blockIdx.x) * kRows;
  const int inside = int(min(int64_t(kRows), p.rows - first));
  const uint32_t input = shared_address(memory), stages = input + L::kInput;
  fetch_input<D>(input, p.x + first * p.stride, p.stride, inside);
  fetch_weights<D>(stages, p, 0);
  copy_commit();

  float out[D / 8][4];
  clear(out);
  const int chunks = int(p.hidden / kUnits);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const uint32_t stage = next_stage<D>(stages, p, chunk, chunks);
    float gate[8][4], up[8][4];
    wgmma::fence();
    from_input<D, false>(gate, input, stage + L::gate);
    from_input<D, false>(up, input, stage + L::up);
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::hold(gate);
    wgmma::hold(up);
#pragma unroll
    for (int t = 0; t < 8; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) gate[t][u] = silu(gate[t][u]) * up[t][u];
    Fragment<1> h[4];
    as_fragments(h, gate);
    wgmma::fence();
    times_rows<false, 0>(out, h, stage + L::down);
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::hold(out);
  }
  store_rows(out, y + first * D, D, inside);
}

template <int D>
__global__ void __launch_bounds__(kThreads, 1)
    mlp_backward(const GatedMlp p, const GatedMlpGradient g) {
  extern __shared__ __align__(1024) unsigned char memory[];
  using L = Layout<D>;
  const int64_t first = int64_t(blockIdx.x) * kRows;
  const int inside = int(min(int64_t(kRows), p.rows - first));
  const uint32_t input = shared_address(memory), gradient = input + L::kInput,
                 stages = gradient + L::kInput;
  fetch_input<D>(input, p.x + first * p.stride, p.stride, inside);
  fetch_input<D>(gradient, g.dy + first * g.stride, g.stride, inside);
  fetch_weights<D>(stages, p, 0);
  copy_commit();

  float dx[D / 8][4];
  clear(dx);
  const int chunks = int(p.hidden / kUnits);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const uint32_t stage = next_stage<D>(stages, p, chunk, chunks);
    float gate[8][4], up[8][4], dh[8][4];
    wgmma::fence();
    from_input<D, false>(gate, input, stage + L::gate);
    from_input<D, false>(up, input, stage + L::up);
    from_input<D, true>(dh, gradient, stage + L::down);
    wgmma::commit();
    wgmma::wait<0>();
    wgmma::hold(gate);
    wgmma::hold(up);
    wgmma::hold(dh);
    // They become dgate, dup and h.
#pragma unroll
    for (int t = 0; t < 8; ++t)
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const float x = gate[t][u], s = sigmoid(x), open = x * s, d = dh[t][u], through = up[t][u];
        gate[t][u] = d * through * (s + open * (1 - s));
        up[t][u] = d * open;
        dh[t][u] = open * through;
      }
    Fragment<1> dgate[4], dup[4];
    as_fragments(dgate, gate);
    as_fragments(dup, up);
    wgmma::fence();
    times_columns<false>(dx, dgate, stage + L::gate, kTileBytes);
    times_columns<false>(dx, dup, stage + L::up, kTileBytes);
    wgmma::commit();
    const int64_t unit = int64_t(chunk) * kUnits;
    store_rows(gate, g.dboth + first * 2 * p.hidden + unit, 2 * p.hidden, inside);
    store_rows(up, g.dboth + first * 2 * p.hidden + p.hidden + unit, 2 * p.hidden, inside);
    store_rows(dh, g.h + first * p.hidden + unit, p.hidden, inside);
    wgmma::wait<0>();
    wgmma::hold(dx);
  }
  store_rows(dx, g.dx + first * D, D, inside);
}

unsigned blocks_of(const GatedMlp& p) {
  const int64_t blocks = (p.rows + kRows - 1) / kRows;
  check(blocks < (int64_t(1) << 31), "[gated_mlp] too many rows for a grid");
  return unsigned(blocks);
}

template <int D> void launch_forward(const GatedMlp& p, uint16_t* y, cudaStream_t stream) {
  constexpr int kBytes = Layout<D>::all(1);
  allow_shared(mlp_forward<D>, kBytes);
  mlp_forward<D><<<blocks_of(p), kThreads, kBytes, stream>>>(p, y);
}
template <int D>
void launch_backward(const GatedMlp& p, const GatedMlpGradient& g, cudaStream_t stream) {
  constexpr int kBytes = Layout<D>::all(2);
  allow_shared(mlp_backward<D>, kBytes);
  mlp_backward<D><<<blocks_of(p), kThreads, kBytes, stream>>>(p, g);
}

}  // namespace

void hopper_mlp_forward(const GatedMlp& p, uint16_t* y, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  p.D == 64 ? launch_forward<64>(p, y, on) : launch_forward<128>(p, y, on);
  check_launch("gated_mlp");
}

void hopper_mlp_backward(const GatedMlp& p, const GatedMlpGradient& g, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  p.D == 64 ? launch_backward<64>(p, g, on) : launch_backward<128>(p, g, on);
  check_launch("gated_mlp");
}

}  // namespace lrnn::kernels::cuda
