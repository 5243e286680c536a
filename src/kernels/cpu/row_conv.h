#pragma once
#include "kernels/cpu/functions.h"
#include "kernels/row_kernels.h"

namespace lrnn::kernels::rows::LRNN_ISA {
namespace {

using namespace kernels::LRNN_ISA;

// The sequence that owns token t.
template <class Io> int64_t sequence_of(const Conv<Io>& a, int64_t t) {
  int64_t low = 0, high = a.sequences;  // begin[low] <= t < begin[high]
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (a.begin[middle] <= t ? low : high) = middle;
  }
  return low;
}

// Calls body(s, from, to) for each sequence's part of the tokens first .. last-1.
template <class Io, class Body>
void each_sequence(const Conv<Io>& a, int64_t first, int64_t last, Body&& body) {
  if (first >= last) return;
  for (int64_t s = sequence_of(a, first); s < a.sequences && a.begin[s] < last; ++s) {
    const int64_t from = a.begin[s] > first ? a.begin[s] : first;
    const int64_t to = a.begin[s + 1] < last ? a.begin[s + 1] : last;
    if (from < to) body(s, from, to);
  }
}

// The input at time t of sequence s, which for t before its beginning is the state's.
template <class Io> inline const Io* input(const Conv<Io>& a, int64_t s, int64_t t) {
  const int64_t before = a.begin[s] - t;
  if (before <= 0) return a.x + t * a.stride;
  return a.state ? a.state + (s * a.W + a.W - before) * a.D : a.zeros;
}

// The inputs of one token, oldest first. kW is W where it is known while compiling (loops over the
// taps then unroll), else 0.
template <int kW, class Io> struct Taps {
  const Conv<Io>& a;
  const int64_t W = kW ? kW : a.W;
  const Io* row[kW ? kW : 1] = {};
  int64_t s = 0, t = 0;

  inline void move_to(int64_t s_, int64_t t_) {
    s = s_, t = t_;
    for (int w = 0; w < kW; ++w) row[w] = input(a, s, t - kW + 1 + w);
  }
  inline const Io* operator[](int64_t w) const {
    if constexpr (kW) return row[w];
    return input(a, s, t - W + 1 + w);
  }
  // Before the activation.
  template <class Part> inline auto sum(int64_t d, Part part) const {
    Vec<Real<Io>> z{};
    if (a.bias) z = load(a.bias + d, part);
    for (int64_t w = 0; w < W; ++w)
      z += load(a.weight + w * a.D + d, part) * load((*this)[w] + d, part);
    return z;
  }
};

template <int kW, class Io> void conv_(const Conv<Io>& a, int64_t first, int64_t last, Io* y) {
  Taps<kW, Io> taps{a};
  each_sequence(a, first, last, [&](int64_t s, int64_t from, int64_t to) {
    for (int64_t t = from; t < to; ++t) {
      taps.move_to(s, t);
      Io* out = y + t * a.D;
      over<Real<Io>>(a.D, [&](int64_t d, auto part) {
        const auto z = taps.sum(d, part);
        store(out + d, a.silu ? silu(z) : z, part);
      });
    }
  });
}

// dz of token t into its slot of the ring; the sums over tokens take only a range's own.
template <class Taps, class Io>
inline void ring_in(const Taps& taps, bool own, const ConvGradient<Io>& out) {
  using R = Real<Io>;
  const auto& a = taps.a;
  const int64_t D = a.D;
  R* slot = out.scratch + (taps.t % taps.W) * D;
  over<R>(D, [&](int64_t d, auto part) {
    auto dz = load(out.dy + taps.t * out.stride + d, part);
    if (a.silu) {
      const auto z = taps.sum(d, part);
      dz *= silu_slope(z, sigmoid(z));
    }
    store(slot + d, dz, part);
    if (!own) return;
    for (int64_t w = 0; w < taps.W; ++w) {
      R* dweight = out.dweight + w * D + d;
      store(dweight, load(dweight, part) + dz * load(taps[w] + d, part), part);
    }
    if (out.dbias) store(out.dbias + d, load(out.dbias + d, part) + dz, part);
  });
}

// The gradient of the input at time t, from the ring's dz_t .. dz_{t+W-1}, plus `more`.
template <class Taps, class Io>
inline void ring_out(const Taps& taps, int64_t t, const Io* more, Io* target,
                     const Real<Io>* ring) {
  using R = Real<Io>;
  const int64_t D = taps.a.D, W = taps.W;
  over<R>(D, [&](int64_t d, auto part) {
    Vec<R> dx{};
    if (more) dx = load(more + d, part);
    for (int64_t i = 0; i < W; ++i)
      dx += load(taps.a.weight + (W - 1 - i) * D + d, part) *
            load(ring + ((t + W + i) % W) * D + d, part);
    store(target + d, dx, part);
  });
}

// Token by token: dz_t goes into a ring of the last W, and with it the gradient of the input W-1
// tokens back is complete. A range recomputes the dz of up to W-1 tokens behind its end, so that
// ranges need nothing from each other.
template <int kW, class Io>
void conv_backward_(const Conv<Io>& a, int64_t first, int64_t last, const ConvGradient<Io>& out) {
  Taps<kW, Io> taps{a};
  const int64_t W = taps.W, D = a.D;
  each_sequence(a, first, last, [&](int64_t s, int64_t from, int64_t to) {
    const int64_t begin = a.begin[s], end = a.begin[s + 1];
    std::memset(out.scratch, 0, size_t(W * D) * sizeof(*out.scratch));
    for (int64_t t = from; t < to + W - 1; ++t) {
      if (t < end) {
        taps.move_to(s, t);
        ring_in(taps, t < to, out);
      } else {
        std::memset(out.scratch + (t % W) * D, 0, size_t(D) * sizeof(*out.scratch));
      }
      const int64_t back = t - W + 1;
      if (back >= from) {
        const int64_t row = back - (end - W);  // of the state that comes out
        const Io* more = out.dnext && row >= 0 ? out.dnext + (s * W + row) * D : nullptr;
        ring_out(taps, back, more, out.dx + back * D, out.scratch);
      } else if (back < begin && from == begin && out.dstate) {
        Io* row = out.dstate + (s * W + W - (begin - back)) * D;
        ring_out(taps, back, static_cast<const Io*>(nullptr), row, out.scratch);
      }
    }
  });
}

template <class Io> void conv(const Conv<Io>& a, int64_t first, int64_t last, Io* y) {
  switch (a.W) {
    case 1: return conv_<1>(a, first, last, y);
    case 2: return conv_<2>(a, first, last, y);
    case 3: return conv_<3>(a, first, last, y);
    case 4: return conv_<4>(a, first, last, y);
    default: return conv_<0>(a, first, last, y);
  }
}

template <class Io>
void conv_backward(const Conv<Io>& a, int64_t first, int64_t last, const ConvGradient<Io>& out) {
  switch (a.W) {
    case 1: return conv_backward_<1>(a, first, last, out);
    case 2: return conv_backward_<2>(a, first, last, out);
    case 3: return conv_backward_<3>(a, first, last, out);
    case 4: return conv_backward_<4>(a, first, last, out);
    default: return conv_backward_<0>(a, first, last, out);
  }
}

}  // namespace
}  // namespace lrnn::kernels::rows::LRNN_ISA
