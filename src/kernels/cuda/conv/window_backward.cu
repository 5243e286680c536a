#include "kernels/cuda/conv/window.cuh"

// The gradients of the short convolution by windows (window.cuh): a warp walks a run of tokens from
// its end and adds up what the weights get.
namespace lrnn::kernels::cuda {
namespace {

constexpr int64_t kWarpsBackward = 1024;

// The gradients of the weights and the bias that a warp has added up, and the sums over the block.
struct Sums {
  Four of[kWindow + 1] = {};  // the last is the bias

  __device__ __forceinline__ void add_up(const ShortConv& p, float* partial) const {
    __shared__ float all[kRuns][kWindow + 1][kTile];
#pragma unroll
    for (int i = 0; i <= kWindow; ++i)
#pragma unroll
      for (int c = 0; c < kFour; ++c) all[threadIdx.y][i][threadIdx.x * kFour + c] = of[i][c];
    __syncthreads();
    const int unused = kWindow - int(p.W), rows = int(p.W) + (p.bias ? 1 : 0);
    for (int i = int(threadIdx.y * kWarp + threadIdx.x); i < rows * kTile; i += kThreads) {
      const int slot = i / kTile, c = i % kTile;
      const int64_t d = int64_t(blockIdx.y) * kTile + c;
      if (d >= p.D) continue;
      float sum = 0;
#pragma unroll
      for (int run = 0; run < kRuns; ++run) sum += all[run][slot + unused][c];
      partial[(int64_t(blockIdx.x) * rows + slot) * p.D + d] = sum;
    }
  }
};

template <bool Bf, int Lanes>
__device__ __forceinline__ void gradients_of_run(const ShortConv& p, const ShortConvGradient& g,
                                                 const Place& at, Sums& sums) {
  const Group<Lanes> group(p, at.d);
  const Rows4<Bf> inputs(p.x, at.s * p.T, p.stride, at.d), dy = rows_of<Bf>(p, g.dy, at),
                                                           dx(g.dx, at.s * p.T, p.D, at.d),
                                                           dnext(g.dnext, at.s * p.W, p.D, at.d);
  Window<Bf, Lanes == kNone> window(p, at, inputs);
  const bool silu = Lanes != kNone || p.silu;
  const int T = int(p.T), W = int(p.W);
  // The gradient before the activation, with the window on its token.
  const auto before = [&](Four d) {
    const Four z = window.sum();
    Four s;
#pragma unroll
    for (int c = 0; c < kFour; ++c) s[c] = silu ? sigmoid_of(z[c]) : 1.f;
    if (group.tile()) {
      Four y;
      float along = 0;
#pragma unroll
      for (int c = 0; c < kFour; ++c) y[c] = z[c] * s[c], along += y[c] * d[c];
      const float sure = group.scale(y), back = group.sum(along) * sure * sure,
                  r = group.in() ? sure : 1.f, less = group.in() ? back : 0.f;
#pragma unroll
      for (int c = 0; c < kFour; ++c) d[c] = r * (d[c] - y[c] * less);
    }
    if (silu)
#pragma unroll
      for (int c = 0; c < kFour; ++c) d[c] *= s[c] * (1 + z[c] * (1 - s[c]));
    return d;
  };
  Four dz[kWindow] = {};  // of tokens t-3 .. t
  const auto push = [&](const Four& next) {
#pragma unroll
    for (int w = 0; w + 1 < kWindow; ++w) dz[w] = dz[w + 1];
    dz[kWindow - 1] = next;
  };
  // dx of token t-3, which all of dz read.
  const auto leave = [&](int t) {
    const int out = t - (kWindow - 1);
    if (out < at.first) return;
    Four sum = {};
#pragma unroll
    for (int w = 0; w < kWindow; ++w)
#pragma unroll
      for (int c = 0; c < kFour; ++c) sum[c] += window.weight[w][c] * dz[kWindow - 1 - w][c];
    if (g.dnext && out - T + W >= 0) {
      const Four more = dnext.load(out - T + W);
#pragma unroll
      for (int c = 0; c < kFour; ++c) sum[c] += more[c];
    }
    if (at.writes) dx.store(out, sum);
  };
  const auto token = [&](int t, const Four& x, const Four& d) {
    window.move(x);
    push(before(d));
#pragma unroll
    for (int c = 0; c < kFour; ++c) {
      const float here = dz[kWindow - 1][c];
      if (Lanes == kNone) sums.of[kWindow][c] += here;
#pragma unroll
      for (int w = 0; w < kWindow; ++w) sums.of[w][c] += here * window.x[w][c];
    }
    leave(t);
  };
  int t = at.first;
  for (; t + kAhead <= at.last; t += kAhead) {
    Four x[kAhead], d[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) x[u] = inputs.load(t + u), d[u] = dy.load(t + u);
#pragma unroll
    for (int u = 0; u < kAhead; ++u) token(t + u, x[u], d[u]);
  }
#pragma unroll 1
  for (; t < at.last; ++t) token(t, inputs.load(t), dy.load(t));
    // dx of the last three needs the gradients of the next run's first three.
#pragma unroll 1
  for (; t < at.last + kWindow - 1; ++t) {
    Four next = {};
    if (t < T) {
      window.move(inputs.load(t));
      next = before(dy.load(t));
    }
    push(next);
    leave(t);
  }
}

template <bool Bf, int Lanes>
__global__ void __launch_bounds__(kThreads, 4)
    gradients(const ShortConv p, const ShortConvGradient g, int64_t runs) {
  const Place at(p, int(g.range) / kRuns, runs);
  Sums sums;
  if (at.run) gradients_of_run<Bf, Lanes>(p, g, at, sums);
  if (!at.writes) sums = {};
  sums.add_up(p, static_cast<float*>(g.partial));
}

}  // namespace

ConvParts window_parts(const ShortConv& p) {
  const int64_t length = run_length(p, kWarpsBackward);
  return {kRuns * length, blocks_for(p, length).x};
}

void window_backward(const ShortConv& p, const ShortConvGradient& g, cudaStream_t stream) {
  const int64_t length = g.range / kRuns;
  for_kind(p, [&](auto narrow, auto lanes) {
    gradients<narrow.value, lanes.value>
        <<<blocks_for(p, length), dim3(kWarp, kRuns), 0, stream>>>(p, g, runs_of(p, length));
  });
  check_launch("short_conv");
}

}  // namespace lrnn::kernels::cuda
