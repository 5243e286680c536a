#include "kernels/cuda/short_conv.cuh"

// A warp has 128 channels, four per thread, and a run of tokens, whose inputs (and, backward, whose
// gradients before the activation) move through registers: everything is read and written once.
// Channels that leave as units have their neighbours in the same warp.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kWarp = 32, kRuns = 4;  // runs of a block, a warp each
constexpr int kWindow = 4, kFour = 4, kTile = kWarp * kFour;
constexpr int kAhead = 4;  // tokens whose loads are on their way together
constexpr int64_t kRun = 8;
constexpr int kThreads = kWarp * kRuns;

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

// weight[w][c] = weights[channel d + c][w], of fewer than four weights the first are zero.
__device__ __forceinline__ void load_weights(const ShortConv& p, int64_t d, Four* weight) {
  const bool narrow = p.weight_type == Type::kBFloat16;
  if (p.W == kWindow && reinterpret_cast<uintptr_t>(p.weight) % 16 == 0) {  // all four are a load
#pragma unroll
    for (int c = 0; c < kFour; ++c) {
      const Four all = narrow ? load_four_at<true>(p.weight, (d + c) * kWindow)
                              : load_four_at<false>(p.weight, (d + c) * kWindow);
#pragma unroll
      for (int w = 0; w < kWindow; ++w) weight[w][c] = all[w];
    }
    return;
  }
  const int unused = kWindow - int(p.W);
#pragma unroll
  for (int w = 0; w < kWindow; ++w)
#pragma unroll
    for (int c = 0; c < kFour; ++c)
      weight[w][c] =
          w < unused ? 0.f : load_as<float>(p.weight_type, p.weight, (d + c) * p.W + w - unused);
}

// The inputs t-3 .. t of a token and their weights.
template <bool Bf, bool Bias> struct Window {
  Four weight[kWindow], x[kWindow] = {}, bias = {};

  __device__ __forceinline__ Window(const ShortConv& p, int64_t d) {
    load_weights(p, d, weight);
    if (Bias && p.bias)
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

// This thread's channels, and its warp's run of tokens.
struct Place {
  int64_t d, first, last;
  bool valid;
  __device__ __forceinline__ Place(const ShortConv& p, int64_t length) {
    d = (int64_t(blockIdx.y) * kWarp + threadIdx.x) * kFour;
    first = (int64_t(blockIdx.x) * kRuns + threadIdx.y) * length;
    last = min(first + length, p.rows);
    valid = d < p.D && first < last;
  }
};

// The channels of a group: whole neighbouring threads of one warp, all there or none.
class Group {
 public:
  __device__ __forceinline__ Group(const ShortConv& p, int64_t d)
      : lanes_(max(int(p.group) / kFour, 1)),
        mask_((lanes_ == kWarp ? ~0u : (1u << lanes_) - 1)
              << (threadIdx.x / unsigned(lanes_) * unsigned(lanes_))),
        eps_(p.eps),
        in_(d < p.units) {}
  __device__ __forceinline__ bool in() const { return in_; }
  __device__ __forceinline__ float sum(float x) const {
#pragma unroll
    for (int step = kWarp / 2; step > 0; step /= 2)
      if (step < lanes_) x += __shfl_xor_sync(mask_, x, step);
    return x;
  }
  // What makes y a unit.
  __device__ __forceinline__ float scale(const Four& y) const {
    return rsqrtf(sum(y[0] * y[0] + y[1] * y[1] + y[2] * y[2] + y[3] * y[3]) + eps_);
  }

 private:
  int lanes_;
  unsigned mask_;
  float eps_;
  bool in_;
};

// And the state after each sequence, none of which may be empty.
template <bool Bf, bool Unit>
__global__ void __launch_bounds__(kThreads) forward(const ShortConv p, void* y, void* next) {
  const Place at(p, kRun);
  if (!at.valid) return;
  const Group group(p, at.d);
  Window<Bf, !Unit> window(p, at.d);
  for (int64_t from = at.first; from < at.last;) {
    const Sequence q = sequence_of(p, from);
    const int64_t to = min(at.last, q.end);
    window.begin(p, q, from - q.begin, at.d);
    for (int64_t some = from; some < to; some += kAhead) {
      Four x[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u)
        x[u] = load_four_at<Bf>(p.x, min(some + u, to - 1) * p.stride + at.d);
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t row = some + u;
        if (row >= to) break;
        window.move(x[u]);
        Four z = window.sum();
        if (p.silu)
#pragma unroll
          for (int c = 0; c < kFour; ++c) z[c] *= sigmoid_of(z[c]);
        if (Unit && group.in()) {
          const float r = group.scale(z);
#pragma unroll
          for (int c = 0; c < kFour; ++c) z[c] *= r;
        }
        store_four_at<Bf>(y, row * p.D + at.d, z);
      }
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

// dy of these channels: one of the pieces.
__device__ __forceinline__ ConvPiece piece_of(const ShortConvGradient& g, int64_t d) {
  ConvPiece out = g.dy[0];
#pragma unroll
  for (int i = 1; i < kConvPieces; ++i)
    if (g.dy[i].data && g.dy[i].begin <= d) out = g.dy[i];
  return out;
}

// dx of a run needs the gradients before the activation of three tokens more.
template <bool Bf, bool Unit>
__device__ __forceinline__ void gradients_of_run(const ShortConv& p, const ShortConvGradient& g,
                                                 const Place& at, Sums& sums) {
  const ConvPiece dy = piece_of(g, at.d);
  const Group group(p, at.d);
  Window<Bf, !Unit> window(p, at.d);
  for (int64_t from = at.first; from < at.last;) {
    const Sequence q = sequence_of(p, from);
    const int64_t to = min(at.last, max(q.end, from + 1)), end = to + kWindow - 1;
    window.begin(p, q, from - q.begin, at.d);
    Four dz[kWindow] = {};
    for (int64_t some = from; some < end; some += kAhead) {
      Four x[kAhead], d[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t inside = max(from, min(some + u, q.end - 1));
        d[u] = load_four_at<Bf>(dy.data, inside * dy.stride + at.d - dy.begin);
        x[u] = load_four_at<Bf>(p.x, inside * p.stride + at.d);
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t row = some + u;
        if (row >= end) break;
#pragma unroll
        for (int w = 0; w + 1 < kWindow; ++w) dz[w] = dz[w + 1];
        Four& here = dz[kWindow - 1];
        here = d[u];
        window.move(x[u]);
        const Four z = window.sum();
        Four s;
#pragma unroll
        for (int c = 0; c < kFour; ++c) s[c] = p.silu ? sigmoid_of(z[c]) : 1.f;
        if (Unit && group.in()) {
          Four y;
          float along = 0;
#pragma unroll
          for (int c = 0; c < kFour; ++c) y[c] = z[c] * s[c], along += y[c] * here[c];
          const float r = group.scale(y), back = group.sum(along) * r * r;
#pragma unroll
          for (int c = 0; c < kFour; ++c) here[c] = r * (here[c] - y[c] * back);
        }
#pragma unroll
        for (int c = 0; c < kFour; ++c) {
          here[c] = row < q.end ? here[c] * (p.silu ? s[c] * (1 + z[c] * (1 - s[c])) : 1.f) : 0.f;
          const float counts = row < to ? here[c] : 0.f;
          if (!Unit) sums.of[kWindow][c] += counts;
#pragma unroll
          for (int w = 0; w < kWindow; ++w) sums.of[w][c] += counts * window.x[w][c];
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
    }
    from = to;
  }
}

template <bool Bf, bool Unit>
__global__ void __launch_bounds__(kThreads)
    gradients(const ShortConv p, const ShortConvGradient g) {
  const Place at(p, g.range / kRuns);
  Sums sums;
  if (at.valid) gradients_of_run<Bf, Unit>(p, g, at, sums);
  sums.add_up(p, static_cast<float*>(g.partial));
}

bool on_fours(const void* data, int64_t stride, Type type) {
  const int64_t bytes = type == Type::kBFloat16 ? 8 : 16;
  return reinterpret_cast<uintptr_t>(data) % uintptr_t(bytes) == 0 && stride % kFour == 0;
}

// Sizes and inputs, whatever the direction.
bool fits(const ShortConv& p) {
  const bool groups = p.units == 0 || (p.units % p.group == 0 && p.group % kFour == 0 &&
                                       kTile % p.group == 0 && p.units <= p.D);
  return p.type != Type::kFloat64 && p.W <= kWindow && p.D % kFour == 0 && p.rows > 0 && groups &&
         !(p.units > 0 && p.bias) && on_fours(p.x, p.stride, p.type) &&
         on_fours(p.state, p.D, p.type);
}

dim3 blocks_for(const ShortConv& p, int64_t run) {
  const int64_t runs = (p.rows + run - 1) / run, blocks = (runs + kRuns - 1) / kRuns,
                tiles = (p.D + kTile - 1) / kTile;
  check(blocks < (int64_t(1) << 31) && tiles < (int64_t(1) << 16),
        "[short_conv] too many rows or channels for a grid");
  return dim3(unsigned(blocks), unsigned(tiles));
}

}  // namespace

// An empty sequence is met by nobody, but has a state.
bool window_serves(const ShortConv& p) { return fits(p) && !p.cu_seqlens; }

bool window_serves(const ShortConv& p, const ShortConvGradient& g) {
  bool pieces = true;
  for (const ConvPiece& dy : g.dy)
    pieces = pieces && on_fours(dy.data, dy.stride, p.type) && dy.begin % kFour == 0;
  return fits(p) && pieces && !g.dstate && on_fours(g.dnext, p.D, p.type);
}

int64_t window_range(const ShortConv& p) {
  return kRuns * (p.rows < 8192 ? 4 : p.rows < 65536 ? 16 : 32);
}

void window_forward(const ShortConv& p, void* y, void* next, cudaStream_t stream) {
  const auto launch = [&](auto kernel) {
    kernel<<<blocks_for(p, kRun), dim3(kWarp, kRuns), 0, stream>>>(p, y, next);
  };
  const bool narrow = p.type == Type::kBFloat16;
  if (p.units > 0)
    narrow ? launch(forward<true, true>) : launch(forward<false, true>);
  else
    narrow ? launch(forward<true, false>) : launch(forward<false, false>);
  check_launch("short_conv");
}

void window_backward(const ShortConv& p, const ShortConvGradient& g, cudaStream_t stream) {
  const auto launch = [&](auto kernel) {
    kernel<<<blocks_for(p, g.range / kRuns), dim3(kWarp, kRuns), 0, stream>>>(p, g);
  };
  const bool narrow = p.type == Type::kBFloat16;
  if (p.units > 0)
    narrow ? launch(gradients<true, true>) : launch(gradients<false, true>);
  else
    narrow ? launch(gradients<true, false>) : launch(gradients<false, false>);
  check_launch("short_conv");
}

}  // namespace lrnn::kernels::cuda
