#include "kernels/cuda/short_conv.cuh"

// A warp has 128 channels, four per thread, and a run of tokens of one sequence, whose inputs (and,
// backward, whose gradients before the activation) move through registers: everything is read and
// written once. Channels that leave as units have their neighbours in the same warp. Instructions
// are what these kernels wait for, hence indices of 32 bits within a sequence.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kWarp = 32, kRuns = 4;  // runs of a block, a warp each
constexpr int kThreads = kWarp * kRuns;
constexpr int kWindow = 4, kFour = 4, kTile = kWarp * kFour;
constexpr int kAhead = 4;  // tokens whose loads are on their way together: all of a window
// Runs are as long as leaves so many warps; each begins with loads of its weights and its window.
constexpr int64_t kWarpsForward = 2048, kWarpsBackward = 1024;

struct Four {
  float v[kFour];
  __device__ __forceinline__ float& operator[](int i) { return v[i]; }
  __device__ __forceinline__ float operator[](int i) const { return v[i]; }
};

template <bool Bf> __device__ __forceinline__ Four load_four(const char* at) {
  if constexpr (Bf) {
    const uint2 x = __ldg(reinterpret_cast<const uint2*>(at));
    return {__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000u),
            __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xffff0000u)};
  } else {
    const float4 x = __ldg(reinterpret_cast<const float4*>(at));
    return {x.x, x.y, x.z, x.w};
  }
}

template <bool Bf> __device__ __forceinline__ void store_four(char* at, const Four& x) {
  if constexpr (Bf) {
    uint2 both;  // the rounding of to_bf16, two at once
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both.x) : "f"(x[1]), "f"(x[0]));
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both.y) : "f"(x[3]), "f"(x[2]));
    *reinterpret_cast<uint2*>(at) = both;
  } else {
    *reinterpret_cast<float4*>(at) = make_float4(x[0], x[1], x[2], x[3]);
  }
}

// This thread's four channels of one sequence: rows `step` bytes apart.
template <bool Bf> struct Rows4 {
  static constexpr int kBytes = Bf ? 2 : 4;
  const char* data;
  int step;

  __device__ __forceinline__ Rows4(const void* all, int64_t first, int64_t stride, int64_t d)
      : data(static_cast<const char*>(all) + (first * stride + d) * kBytes),
        step(int(stride) * kBytes) {}
  __device__ __forceinline__ Four load(int t) const {
    return load_four<Bf>(data + int64_t(t) * step);
  }
  __device__ __forceinline__ void store(int t, const Four& x) const {
    store_four<Bf>(const_cast<char*>(data) + int64_t(t) * step, x);
  }
};

// This warp's run of tokens first .. last-1 of sequence s, and this thread's channels. Threads
// beyond the last channel have those of the last and leave nothing.
struct Place {
  int64_t s, d;
  int first, last;
  bool run, writes;
  __device__ __forceinline__ Place(const ShortConv& p, int length, int64_t runs) {
    const int64_t at = int64_t(blockIdx.x) * kRuns + threadIdx.y;
    s = at >> 31 || runs >> 31 ? at / runs : int64_t(uint32_t(at) / uint32_t(runs));
    first = int(at - s * runs) * length, last = min(first + length, int(p.T));
    run = s < p.S;
    d = (int64_t(blockIdx.y) * kWarp + threadIdx.x) * kFour;
    writes = d < p.D;
    d = min(d, p.D - kFour);
  }
};

// weight[w][c] = weights[channel d + c][w], of fewer than four weights the first are zero.
__device__ __forceinline__ void load_weights(const ShortConv& p, int64_t d, Four* weight) {
  const char* const data = static_cast<const char*>(p.weight);
  if (p.W == kWindow && reinterpret_cast<uintptr_t>(data) % 16 == 0) {  // all four are a load
    const bool narrow = p.weight_type == Type::kBFloat16;
#pragma unroll
    for (int c = 0; c < kFour; ++c) {
      const Four all = narrow ? load_four<true>(data + (d + c) * kWindow * 2)
                              : load_four<false>(data + (d + c) * kWindow * 4);
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

  __device__ __forceinline__ Window(const ShortConv& p, const Place& at, const Rows4<Bf>& inputs) {
    load_weights(p, at.d, weight);
    if (Bias && p.bias)
#pragma unroll
      for (int c = 0; c < kFour; ++c) bias[c] = static_cast<const float*>(p.bias)[at.d + c];
    // What comes before the first input; before a sequence it is in the state.
    const Rows4<Bf> state(p.state, at.s * p.W, p.D, at.d);
#pragma unroll
    for (int w = 1; w < kWindow; ++w) {
      const int t = at.first - kWindow + w, slot = int(p.W) + t;
      if (t >= 0)
        x[w] = inputs.load(t);
      else if (p.state && slot >= 0)
        x[w] = state.load(slot);
    }
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

// Without the care that the built-in functions take of numbers below 1e-38.
__device__ __forceinline__ float sigmoid_of(float z) {
  float e, s;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(z * -1.4426950408889634f));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(s) : "f"(1.f + e));
  return s;
}

// The neighbouring threads that share a unit: Lanes of them, or any number (kAny), or there are no
// units. Other threads of the warp come along.
constexpr int kNone = 0, kAny = 1;
template <int Lanes> class Group {
 public:
  __device__ __forceinline__ Group(const ShortConv& p, int64_t d)
      : lanes_(Lanes == kAny ? int(p.group) / kFour : Lanes),
        eps_(p.eps),
        tile_(int64_t(blockIdx.y) * kTile < p.units),
        in_(d < p.units) {}
  __device__ __forceinline__ bool tile() const { return Lanes != kNone && tile_; }  // a warp's
  __device__ __forceinline__ bool in() const { return in_; }                        // a thread's
  __device__ __forceinline__ float sum(float x) const {
#pragma unroll
    for (int step = (Lanes == kAny ? kWarp : Lanes) / 2; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, x, step);
      x += step < lanes_ ? other : 0.f;
    }
    return x;
  }
  // What makes y a unit.
  __device__ __forceinline__ float scale(const Four& y) const {
    const float squares = sum(y[0] * y[0] + y[1] * y[1] + y[2] * y[2] + y[3] * y[3]) + eps_;
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(squares));
    return r;
  }

 private:
  int lanes_;
  float eps_;
  bool tile_, in_;
};

// These channels of this sequence: in one of the pieces.
template <bool Bf>
__device__ __forceinline__ Rows4<Bf> rows_of(const ShortConv& p, const ConvPieces& pieces,
                                             const Place& at) {
  ConvPiece piece = pieces.of[0];
#pragma unroll
  for (int i = 1; i < ConvPieces::kMost; ++i)
    if (pieces.of[i].data && pieces.of[i].begin <= at.d) piece = pieces.of[i];
  return {piece.data, at.s * p.T, piece.stride, at.d - piece.begin};
}

// And the state after each sequence.
template <bool Bf, int Lanes>
__global__ void __launch_bounds__(kThreads)
    forward(const ShortConv p, const ConvPieces y, void* next, int length, int64_t runs) {
  const Place at(p, length, runs);
  if (!at.run) return;
  const Group<Lanes> group(p, at.d);
  const Rows4<Bf> inputs(p.x, at.s * p.T, p.stride, at.d), out = rows_of<Bf>(p, y, at);
  Window<Bf, Lanes == kNone> window(p, at, inputs);
  const bool silu = Lanes != kNone || p.silu;
  const auto token = [&](int t, const Four& x) {
    window.move(x);
    Four z = window.sum();
    if (silu)
#pragma unroll
      for (int c = 0; c < kFour; ++c) z[c] *= sigmoid_of(z[c]);
    if (group.tile()) {
      const float sure = group.scale(z), r = group.in() ? sure : 1.f;
#pragma unroll
      for (int c = 0; c < kFour; ++c) z[c] *= r;
    }
    if (at.writes) out.store(t, z);
  };
  int t = at.first;
  for (; t + kAhead <= at.last; t += kAhead) {
    Four x[kAhead];
#pragma unroll
    for (int u = 0; u < kAhead; ++u) x[u] = inputs.load(t + u);
#pragma unroll
    for (int u = 0; u < kAhead; ++u) token(t + u, x[u]);
  }
#pragma unroll 1
  for (; t < at.last; ++t) token(t, inputs.load(t));
  if (at.last < p.T || !at.writes) return;
  const Rows4<Bf> state(next, at.s * p.W, p.D, at.d);
#pragma unroll
  for (int w = 0; w < kWindow; ++w) {
    const int slot = w - (kWindow - int(p.W));
    if (slot >= 0) state.store(slot, window.x[w]);
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

bool on_fours(const void* data, int64_t stride, Type type) {
  const int64_t bytes = type == Type::kBFloat16 ? 8 : 16;
  return reinterpret_cast<uintptr_t>(data) % uintptr_t(bytes) == 0 && stride % kFour == 0 &&
         stride < int64_t(1) << 28;
}

int64_t runs_of(const ShortConv& p, int64_t length) { return (p.T + length - 1) / length; }

dim3 blocks_for(const ShortConv& p, int64_t length) {
  const int64_t runs = p.S * runs_of(p, length), blocks = (runs + kRuns - 1) / kRuns,
                tiles = (p.D + kTile - 1) / kTile;
  check(blocks < (int64_t(1) << 31) && tiles < (int64_t(1) << 16),
        "[short_conv] too many rows or channels for a grid");
  return dim3(unsigned(blocks), unsigned(tiles));
}

// Tokens of a run: the same for all of a sequence, in windows.
int64_t run_length(const ShortConv& p, int64_t warps) {
  const int64_t tiles = (p.D + kTile - 1) / kTile;
  int64_t most = 32;
  while (most > kWindow && p.S * runs_of(p, most) * tiles < warps) most /= 2;
  const int64_t even = (p.T + runs_of(p, most) - 1) / runs_of(p, most);
  return (even + kWindow - 1) / kWindow * kWindow;
}

// Calls f with constants: whether elements are bfloat16, and how many threads share a unit.
template <class F> void for_kind(const ShortConv& p, F&& f) {
  const auto lanes = [&](auto narrow) {
    using std::integral_constant;
    if (p.units == 0)
      f(narrow, integral_constant<int, kNone>());
    else if (p.group == 32)
      f(narrow, integral_constant<int, 32 / kFour>());
    else if (p.group == 128)
      f(narrow, integral_constant<int, 128 / kFour>());
    else
      f(narrow, integral_constant<int, kAny>());
  };
  p.type == Type::kBFloat16 ? lanes(std::true_type()) : lanes(std::false_type());
}

}  // namespace

bool window_serves(const ShortConv& p, const ConvPieces& y) {
  const bool groups = p.units == 0 || (p.units % p.group == 0 && p.group % kFour == 0 &&
                                       kTile % p.group == 0 && p.units <= p.D && !p.bias);
  bool pieces = true;
  for (const ConvPiece& piece : y.of)
    pieces = pieces && on_fours(piece.data, piece.stride, p.type) && piece.begin % kFour == 0;
  return p.type != Type::kFloat64 && p.W <= kWindow && p.D % kFour == 0 && p.rows > 0 && groups &&
         pieces && !p.cu_seqlens && p.T < int64_t(1) << 30 && on_fours(p.x, p.stride, p.type) &&
         on_fours(p.state, p.D, p.type);
}

bool window_serves(const ShortConv& p, const ShortConvGradient& g) {
  return window_serves(p, g.dy) && !g.dstate && on_fours(g.dnext, p.D, p.type);
}

ConvParts window_parts(const ShortConv& p) {
  const int64_t length = run_length(p, kWarpsBackward);
  return {kRuns * length, blocks_for(p, length).x};
}

void window_forward(const ShortConv& p, const ConvPieces& y, void* next, cudaStream_t stream) {
  const int64_t length = run_length(p, kWarpsForward);
  for_kind(p, [&](auto narrow, auto lanes) {
    forward<narrow.value, lanes.value><<<blocks_for(p, length), dim3(kWarp, kRuns), 0, stream>>>(
        p, y, next, int(length), runs_of(p, length));
  });
  check_launch("short_conv");
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
