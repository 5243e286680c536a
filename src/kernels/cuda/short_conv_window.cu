#include "kernels/cuda/short_conv.cuh"

// Four channels per thread and a run of tokens, whose inputs (and, backward, whose gradients before
// the activation) move through registers: everything is read and written once.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 128, kRun = 8, kWindow = 4, kFour = 4;

struct Four {
  float v[kFour];
  __device__ __forceinline__ float& operator[](int i) { return v[i]; }
  __device__ __forceinline__ float operator[](int i) const { return v[i]; }
};

template <bool Bf> __device__ __forceinline__ Four load_four_at(const void* data, int64_t at) {
  if constexpr (Bf) {
    const uint2 x = __ldg(reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(data) + at));
    return {__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000u),
            __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xffff0000u)};
  } else {
    const float4 x = __ldg(reinterpret_cast<const float4*>(static_cast<const float*>(data) + at));
    return {x.x, x.y, x.z, x.w};
  }
}

template <bool Bf>
__device__ __forceinline__ void store_four_at(void* data, int64_t at, const Four& x) {
  if constexpr (Bf)
    *reinterpret_cast<uint2*>(static_cast<uint16_t*>(data) + at) =
        make_uint2(uint32_t(to_bf16(x[0])) | uint32_t(to_bf16(x[1])) << 16,
                   uint32_t(to_bf16(x[2])) | uint32_t(to_bf16(x[3])) << 16);
  else
    *reinterpret_cast<float4*>(static_cast<float*>(data) + at) =
        make_float4(x[0], x[1], x[2], x[3]);
}

// Input t of a sequence; those before it are in the state.
template <bool Bf>
__device__ __forceinline__ Four input(const ShortConv& p, const Sequence& q, int64_t t, int64_t d) {
  if (t >= 0) return load_four_at<Bf>(p.x, (q.begin + t) * p.stride + d);
  if (!p.state || t < -p.W) return {};
  return load_four_at<Bf>(p.state, (q.s * p.W + p.W + t) * p.D + d);
}

// The inputs t-3 .. t of a token and their weights; of fewer than four weights the first are zero.
template <bool Bf> struct Window {
  Four weight[kWindow], x[kWindow] = {}, bias = {};

  __device__ __forceinline__ Window(const ShortConv& p, int64_t d) {
    const int unused = kWindow - int(p.W);
#pragma unroll
    for (int w = 0; w < kWindow; ++w)
#pragma unroll
      for (int c = 0; c < kFour; ++c)
        weight[w][c] =
            w < unused ? 0.f : load_as<float>(p.weight_type, p.weight, (d + c) * p.W + w - unused);
    if (p.bias)
#pragma unroll
      for (int c = 0; c < kFour; ++c) bias[c] = static_cast<const float*>(p.bias)[d + c];
  }
  // What comes before input t.
  __device__ __forceinline__ void begin(const ShortConv& p, const Sequence& q, int64_t t,
                                        int64_t d) {
#pragma unroll
    for (int w = 1; w < kWindow; ++w) x[w] = input<Bf>(p, q, t - kWindow + w, d);
  }
  __device__ __forceinline__ void move(const Four& next) {
#pragma unroll
    for (int w = 0; w + 1 < kWindow; ++w) x[w] = x[w + 1];
    x[kWindow - 1] = next;
  }
  __device__ __forceinline__ Four sum() const {
    Four z = bias;
#pragma unroll
    for (int w = 0; w < kWindow; ++w)
#pragma unroll
      for (int c = 0; c < kFour; ++c) z[c] += weight[w][c] * x[w][c];
    return z;
  }
};

__device__ __forceinline__ float sigmoid_of(float z) { return __fdividef(1.f, 1.f + __expf(-z)); }

// This thread's channels and run of tokens.
struct Place {
  int64_t d, run, first, last;
  __device__ __forceinline__ Place(const ShortConv& p, int64_t length) {
    const int64_t fours = p.D / kFour, at = int64_t(blockIdx.x) * kThreads + threadIdx.x;
    run = at / fours, d = (at - run * fours) * kFour;
    first = run * length, last = min(first + length, p.rows);
  }
};

// And the state after each sequence, none of which may be empty.
template <bool Bf>
__global__ void __launch_bounds__(kThreads) forward(const ShortConv p, void* y, void* next) {
  const Place at(p, kRun);
  if (at.first >= at.last) return;
  Window<Bf> window(p, at.d);
  for (int64_t from = at.first; from < at.last;) {
    const Sequence q = sequence_of(p, from);
    const int64_t to = min(at.last, q.end);
    window.begin(p, q, from - q.begin, at.d);
#pragma unroll 4
    for (int64_t row = from; row < to; ++row) {
      window.move(load_four_at<Bf>(p.x, row * p.stride + at.d));
      Four z = window.sum();
      if (p.silu)
#pragma unroll
        for (int c = 0; c < kFour; ++c) z[c] *= sigmoid_of(z[c]);
      store_four_at<Bf>(y, row * p.D + at.d, z);
    }
    from = to;
    if (to < q.end) continue;
#pragma unroll
    for (int w = 0; w < kWindow; ++w) {
      const int64_t slot = w - (kWindow - p.W);
      if (slot >= 0) store_four_at<Bf>(next, (q.s * p.W + slot) * p.D + at.d, window.x[w]);
    }
  }
}

// dx of a run needs the gradients before the activation of three tokens more.
template <bool Bf>
__global__ void __launch_bounds__(kThreads)
    gradients(const ShortConv p, const ShortConvGradient g) {
  const Place at(p, g.range);
  if (at.first >= at.last) return;
  Window<Bf> window(p, at.d);
  Four sums[kWindow] = {}, dbias = {};
  for (int64_t from = at.first; from < at.last;) {
    const Sequence q = sequence_of(p, from);
    const int64_t to = min(at.last, max(q.end, from + 1));
    window.begin(p, q, from - q.begin, at.d);
    Four dz[kWindow] = {};
#pragma unroll 2
    for (int64_t row = from; row < to + kWindow - 1; ++row) {
#pragma unroll
      for (int w = 0; w + 1 < kWindow; ++w) dz[w] = dz[w + 1];
      Four& here = dz[kWindow - 1];
      // Loads without a condition, so that they can be on their way early.
      const int64_t inside = max(from, min(row, q.end - 1));
      here = load_four_at<Bf>(g.dy, inside * g.stride + at.d);
      window.move(load_four_at<Bf>(p.x, inside * p.stride + at.d));
      const Four z = window.sum();
#pragma unroll
      for (int c = 0; c < kFour; ++c) {
        const float s = sigmoid_of(z[c]);
        here[c] = row < q.end ? here[c] * (p.silu ? s * (1 + z[c] * (1 - s)) : 1.f) : 0.f;
        const float counts = row < to ? here[c] : 0.f;
        dbias[c] += counts;
#pragma unroll
        for (int w = 0; w < kWindow; ++w) sums[w][c] += counts * window.x[w][c];
      }
      const int64_t out = row - (kWindow - 1);
      if (out < from) continue;
      Four dx = {};
#pragma unroll
      for (int w = 0; w < kWindow; ++w)
#pragma unroll
        for (int c = 0; c < kFour; ++c) dx[c] += window.weight[w][c] * dz[kWindow - 1 - w][c];
      const int64_t slot = out - q.end + p.W;
      if (g.dnext && slot >= 0) {
        const Four more = load_four_at<Bf>(g.dnext, (q.s * p.W + slot) * p.D + at.d);
#pragma unroll
        for (int c = 0; c < kFour; ++c) dx[c] += more[c];
      }
      store_four_at<Bf>(g.dx, out * p.D + at.d, dx);
    }
    from = to;
  }
  float* const partial =
      static_cast<float*>(g.partial) + at.run * (p.W + (p.bias ? 1 : 0)) * p.D + at.d;
#pragma unroll
  for (int w = 0; w < kWindow; ++w) {
    const int64_t slot = w - (kWindow - p.W);
    if (slot >= 0) store_four_at<false>(partial, slot * p.D, sums[w]);
  }
  if (p.bias) store_four_at<false>(partial, p.W * p.D, dbias);
}

bool on_fours(const void* data, int64_t stride, Type type) {
  const int64_t bytes = type == Type::kBFloat16 ? 8 : 16;
  return reinterpret_cast<uintptr_t>(data) % uintptr_t(bytes) == 0 && stride % kFour == 0;
}

bool served(const ShortConv& p) {
  return p.type != Type::kFloat64 && p.W <= kWindow && p.D % kFour == 0 &&
         on_fours(p.x, p.stride, p.type) && on_fours(p.state, p.D, p.type);
}

unsigned blocks_for(const ShortConv& p, int64_t run) {
  const int64_t threads = (p.rows + run - 1) / run * (p.D / kFour),
                blocks = (threads + kThreads - 1) / kThreads;
  check(blocks < (int64_t(1) << 31), "[short_conv] too many rows for a grid");
  return unsigned(blocks);
}

}  // namespace

bool window_forward(const ShortConv& p, void* y, void* next, cudaStream_t stream) {
  // An empty sequence is met by nobody, but has a state.
  if (!served(p) || p.cu_seqlens || p.rows == 0) return false;
  if (p.type == Type::kBFloat16)
    forward<true><<<blocks_for(p, kRun), kThreads, 0, stream>>>(p, y, next);
  else
    forward<false><<<blocks_for(p, kRun), kThreads, 0, stream>>>(p, y, next);
  check_launch("short_conv");
  return true;
}

bool window_backward(const ShortConv& p, const ShortConvGradient& g, cudaStream_t stream) {
  if (!served(p) || p.rows == 0 || g.dstate || !on_fours(g.dy, g.stride, p.type) ||
      !on_fours(g.dnext, p.D, p.type))
    return false;
  if (p.type == Type::kBFloat16)
    gradients<true><<<blocks_for(p, g.range), kThreads, 0, stream>>>(p, g);
  else
    gradients<false><<<blocks_for(p, g.range), kThreads, 0, stream>>>(p, g);
  check_launch("short_conv");
  return true;
}

}  // namespace lrnn::kernels::cuda
