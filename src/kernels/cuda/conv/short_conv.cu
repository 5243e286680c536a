#include "kernels/cuda/conv/short_conv.cuh"

// Any sizes: one thread per channel and run of tokens. Neighbouring threads take neighbouring
// channels; the W inputs of a token are read again from the cache by the tokens after it.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 128, kRun = 16, kWindow = 4;

template <class R>
__device__ __forceinline__ R weight_at(const ShortConv& p, int64_t d, int64_t w) {
  return load_as<R>(p.weight_type, p.weight, d * p.W + w);
}

// Input t of a sequence; those before it are in the state.
template <class R>
__device__ __forceinline__ R input(const ShortConv& p, const Sequence& q, int64_t t, int64_t d) {
  if (t >= 0) return load_as<R>(p.type, p.x, (q.begin + t) * p.stride + d);
  return p.state ? load_as<R>(p.type, p.state, (q.s * p.W + p.W + t) * p.D + d) : R(0);
}

template <class R>
__device__ __forceinline__ R before_activation(const ShortConv& p, const Sequence& q, int64_t t,
                                               int64_t d) {
  R sum = p.bias ? static_cast<const R*>(p.bias)[d] : R(0);
  for (int64_t w = 0; w < p.W; ++w)
    sum += weight_at<R>(p, d, w) * input<R>(p, q, t - (p.W - 1) + w, d);
  return sum;
}

// Calls f(sequence, t, row) for the tokens of this thread's run.
template <class F>
__device__ __forceinline__ void each_token(const ShortConv& p, int64_t first, int64_t last, F&& f) {
  if (first >= last) return;
  Sequence q = sequence_of(p, first);
  for (int64_t row = first; row < last; ++row) {
    if (row >= q.end) q = sequence_of(p, row);
    f(q, row - q.begin, row);
  }
}

template <class R> __global__ void __launch_bounds__(kThreads) conv(ShortConv p, void* y) {
  const int64_t d = int64_t(blockIdx.y) * kThreads + threadIdx.x,
                first = int64_t(blockIdx.x) * kRun;
  if (d >= p.D) return;
  each_token(p, first, min(first + kRun, p.rows), [&](const Sequence& q, int64_t t, int64_t row) {
    const R z = before_activation<R>(p, q, t, d);
    store_as<R>(p.type, y, row * p.D + d, p.silu ? z / (1 + exp_of(-z)) : z);
  });
}

// The state after each sequence: its last W inputs.
template <class R> __global__ void __launch_bounds__(kThreads) conv_state(ShortConv p, void* next) {
  const int64_t d = int64_t(blockIdx.y) * kThreads + threadIdx.x, s = blockIdx.x;
  if (d >= p.D) return;
  const Sequence q = bounds(p, s);
  for (int64_t j = 0; j < p.W; ++j)
    store_as<R>(p.type, next, (s * p.W + j) * p.D + d,
                input<R>(p, q, q.end - q.begin - p.W + j, d));
}

// This block's share of the sums: a row per weight and, with a bias, one more.
template <class R>
__device__ __forceinline__ R* partial_of(const ShortConv& p, const ShortConvGradient& g) {
  return static_cast<R*>(g.partial) + int64_t(blockIdx.x) * (p.W + (p.bias ? 1 : 0)) * p.D;
}

// dpre, and with it this range's share of the gradients of the weights and the bias. The inputs a
// token sees move through registers: kWindow of them, of which the last W count.
template <class R>
__global__ void __launch_bounds__(kThreads) conv_weights(ShortConv p, ShortConvGradient g) {
  const int64_t d = int64_t(blockIdx.y) * kThreads + threadIdx.x;
  const int64_t first = int64_t(blockIdx.x) * g.range, last = min(first + g.range, p.rows);
  if (d >= p.D) return;
  R weight[kWindow], window[kWindow] = {}, sums[kWindow] = {}, dbias = 0;
  const int unused = kWindow - int(p.W);
#pragma unroll
  for (int w = 0; w < kWindow; ++w) weight[w] = w < unused ? R(0) : weight_at<R>(p, d, w - unused);
  const R bias = p.bias ? static_cast<const R*>(p.bias)[d] : R(0);
  R* const dpre = static_cast<R*>(g.dpre);
  int64_t next = -1;  // the row that the window is ready for
  each_token(p, first, last, [&](const Sequence& q, int64_t t, int64_t row) {
    if (row != next || t == 0)
#pragma unroll
      for (int w = 0; w + 1 < kWindow; ++w)
        window[w + 1] = w < unused ? R(0) : input<R>(p, q, t - (kWindow - 1) + w, d);
    next = row + 1;
#pragma unroll
    for (int w = 0; w + 1 < kWindow; ++w) window[w] = w < unused ? R(0) : window[w + 1];
    window[kWindow - 1] = input<R>(p, q, t, d);
    R dz = load_as<R>(p.type, g.dy.of[0].data, row * g.dy.of[0].stride + d);
    if (p.silu) {
      R z = bias;
#pragma unroll
      for (int w = 0; w < kWindow; ++w) z += weight[w] * window[w];
      const R sigmoid = 1 / (1 + exp_of(-z));
      dz *= sigmoid * (1 + z * (1 - sigmoid));
    }
    dpre[row * p.D + d] = dz;
    dbias += dz;
#pragma unroll
    for (int w = 0; w < kWindow; ++w) sums[w] += dz * window[w];
  });
  R* const partial = partial_of<R>(p, g) + d;
  if (p.bias) partial[p.W * p.D] = dbias;
#pragma unroll
  for (int w = 0; w < kWindow; ++w)
    if (w >= unused) partial[(w - unused) * p.D] = sums[w];
}

// The same for longer kernels, one weight after the other.
template <class R>
__global__ void __launch_bounds__(kThreads) conv_many_weights(ShortConv p, ShortConvGradient g) {
  const int64_t d = int64_t(blockIdx.y) * kThreads + threadIdx.x;
  const int64_t first = int64_t(blockIdx.x) * g.range, last = min(first + g.range, p.rows);
  if (d >= p.D) return;
  R* const dpre = static_cast<R*>(g.dpre);
  R* const partial = partial_of<R>(p, g) + d;
  R dbias = 0;
  each_token(p, first, last, [&](const Sequence& q, int64_t t, int64_t row) {
    R dz = load_as<R>(p.type, g.dy.of[0].data, row * g.dy.of[0].stride + d);
    if (p.silu) {
      const R z = before_activation<R>(p, q, t, d), sigmoid = 1 / (1 + exp_of(-z));
      dz *= sigmoid * (1 + z * (1 - sigmoid));
    }
    dpre[row * p.D + d] = dz;
    dbias += dz;
  });
  if (p.bias) partial[p.W * p.D] = dbias;
  for (int64_t w = 0; w < p.W; ++w) {
    R sum = 0;
    each_token(p, first, last, [&](const Sequence& q, int64_t t, int64_t row) {
      sum += dpre[row * p.D + d] * input<R>(p, q, t - (p.W - 1) + w, d);
    });
    partial[w * p.D] = sum;
  }
}

// The gradient of input t of a sequence, which may lie in the state: the outputs that read it, and
// the next state if it is still there.
template <class R>
__device__ __forceinline__ R input_gradient(const ShortConv& p, const ShortConvGradient& g,
                                            const Sequence& q, int64_t t, int64_t d) {
  const int64_t length = q.end - q.begin;
  R sum = 0;
  for (int64_t w = 0; w < p.W; ++w) {
    const int64_t out = t + p.W - 1 - w;
    if (out >= 0 && out < length)
      sum += weight_at<R>(p, d, w) * static_cast<const R*>(g.dpre)[(q.begin + out) * p.D + d];
  }
  const int64_t j = t - length + p.W;
  if (g.dnext && j >= 0) sum += load_as<R>(p.type, g.dnext, (q.s * p.W + j) * p.D + d);
  return sum;
}

template <class R>
__global__ void __launch_bounds__(kThreads) conv_inputs(ShortConv p, ShortConvGradient g) {
  const int64_t d = int64_t(blockIdx.y) * kThreads + threadIdx.x,
                first = int64_t(blockIdx.x) * kRun;
  if (d >= p.D) return;
  each_token(p, first, min(first + kRun, p.rows), [&](const Sequence& q, int64_t t, int64_t row) {
    store_as<R>(p.type, g.dx, row * p.D + d, input_gradient<R>(p, g, q, t, d));
  });
}

template <class R>
__global__ void __launch_bounds__(kThreads) conv_states(ShortConv p, ShortConvGradient g) {
  const int64_t d = int64_t(blockIdx.y) * kThreads + threadIdx.x, s = blockIdx.x;
  if (d >= p.D) return;
  const Sequence q = bounds(p, s);
  for (int64_t j = 0; j < p.W; ++j)
    store_as<R>(p.type, g.dstate, (s * p.W + j) * p.D + d, input_gradient<R>(p, g, q, j - p.W, d));
}

dim3 grid(int64_t blocks, int64_t D) {
  return dim3(unsigned(blocks), unsigned((D + kThreads - 1) / kThreads));
}

template <class R> void forward(const ShortConv& p, void* y, void* next, cudaStream_t stream) {
  if (p.rows > 0) conv<R><<<grid((p.rows + kRun - 1) / kRun, p.D), kThreads, 0, stream>>>(p, y);
  if (p.S > 0) conv_state<R><<<grid(p.S, p.D), kThreads, 0, stream>>>(p, next);
  check_launch("short_conv");
}

template <class R>
void backward(const ShortConv& p, const ShortConvGradient& g, cudaStream_t stream) {
  if (p.rows > 0) {
    const auto ranges = grid((p.rows + g.range - 1) / g.range, p.D);
    if (p.W <= kWindow)
      conv_weights<R><<<ranges, kThreads, 0, stream>>>(p, g);
    else
      conv_many_weights<R><<<ranges, kThreads, 0, stream>>>(p, g);
    conv_inputs<R><<<grid((p.rows + kRun - 1) / kRun, p.D), kThreads, 0, stream>>>(p, g);
  }
  if (p.S > 0 && g.dstate) conv_states<R><<<grid(p.S, p.D), kThreads, 0, stream>>>(p, g);
  check_launch("short_conv");
}

}  // namespace

ConvParts conv_parts(const ShortConv& p, const ShortConvGradient& g) {
  if (window_serves(p, g)) return window_parts(p);
  const int64_t range = p.rows < 8192 ? 8 : p.rows < 65536 ? 32 : 128;
  return {range, (p.rows + range - 1) / range};
}

void short_conv_forward(const ShortConv& p, const ConvPieces& y, void* next, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.D == 0) return;
  if (window_serves(p, y)) return window_forward(p, y, next, on);
  check(p.units == 0 && !y.of[1].data, "[short_conv] there is no kernel for these units");
  void* const whole = y.of[0].data;
  p.type == Type::kFloat64 ? forward<double>(p, whole, next, on)
                           : forward<float>(p, whole, next, on);
}

void short_conv_backward(const ShortConv& p, const ShortConvGradient& g, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.D == 0) return;
  if (window_serves(p, g)) return window_backward(p, g, on);
  check(p.units == 0 && !g.dy.of[1].data, "[short_conv] there is no kernel for these units");
  p.type == Type::kFloat64 ? backward<double>(p, g, on) : backward<float>(p, g, on);
}

}  // namespace lrnn::kernels::cuda
