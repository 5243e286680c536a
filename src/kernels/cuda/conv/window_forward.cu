#include "kernels/cuda/conv/window.cuh"

// The short convolution by windows (window.cuh): the last inputs stay in registers as a warp walks
// a run of tokens.
namespace lrnn::kernels::cuda {
namespace {

constexpr int64_t kWarpsForward = 2048;

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

bool on_fours(const void* data, int64_t stride, Type type) {
  const int64_t bytes = type == Type::kBFloat16 ? 8 : 16;
  return reinterpret_cast<uintptr_t>(data) % uintptr_t(bytes) == 0 && stride % kFour == 0 &&
         stride < int64_t(1) << 28;
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

void window_forward(const ShortConv& p, const ConvPieces& y, void* next, cudaStream_t stream) {
  const int64_t length = run_length(p, kWarpsForward);
  for_kind(p, [&](auto narrow, auto lanes) {
    forward<narrow.value, lanes.value><<<blocks_for(p, length), dim3(kWarp, kRuns), 0, stream>>>(
        p, y, next, int(length), runs_of(p, length));
  });
  check_launch("short_conv");
}

}  // namespace lrnn::kernels::cuda
