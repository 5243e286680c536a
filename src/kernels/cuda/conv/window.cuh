#pragma once
#include "kernels/cuda/conv/short_conv.cuh"

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

inline int64_t runs_of(const ShortConv& p, int64_t length) { return (p.T + length - 1) / length; }

inline dim3 blocks_for(const ShortConv& p, int64_t length) {
  const int64_t runs = p.S * runs_of(p, length), blocks = (runs + kRuns - 1) / kRuns,
                tiles = (p.D + kTile - 1) / kTile;
  check(blocks < (int64_t(1) << 31) && tiles < (int64_t(1) << 16),
        "[short_conv] too many rows or channels for a grid");
  return dim3(unsigned(blocks), unsigned(tiles));
}

// Tokens of a run: the same for all of a sequence, in windows, and as many as leave so many warps.
// Each run begins with loads of its weights and its window.
inline int64_t run_length(const ShortConv& p, int64_t warps) {
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
}  // namespace lrnn::kernels::cuda
