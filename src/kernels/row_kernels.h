#pragma once
#include <cstdint>

#include "kernels/dispatch.h"
#include "kernels/types.h"

// Kernels over rows of contiguous values: norms, SwiGLU, the short convolution, the loss and AdamW.
// Each works on the range it is given and nothing else, so the caller may hand ranges to any
// threads; sums that cross rows are left in partial results of fixed ranges, to be added in a fixed
// order.
namespace lrnn::kernels::rows {

using kernels::Bf16;

// The type an element type is computed in.
template <class Io> struct Computed { using type = Io; };
template <> struct Computed<Bf16> { using type = float; };
template <class Io> using Real = typename Computed<Io>::type;

// y = x / sqrt(share sum(x^2) + eps) * weight, row by row. share = 1/D is the RMS norm, 1 the L2
// norm.
template <class Io> struct Norm {
  const Io* x;
  int64_t stride;          // between rows of x
  const Real<Io>* weight;  // [D], or null for ones
  double share, eps;
  int64_t D;
};

// h = silu(gate) up.
template <class Io> struct Swiglu {
  const Io *gate, *up;
  int64_t gate_stride, up_stride, D;
};

// The convolution of ops/short_conv/short_conv.h over sequences that lie end to end: sequence s
// owns the tokens begin[s] .. begin[s+1]-1.
template <class Io> struct Conv {
  const Io* x;
  int64_t stride;          // between tokens of x
  const Real<Io>* weight;  // [W,D]
  const Real<Io>* bias;    // [D], or null
  const Io* state;         // [S,W,D], newest row last, or null for zeros
  const Io* zeros;         // [D]
  const int64_t* begin;    // [S+1]
  int64_t sequences, D, W;
  bool silu;
};

template <class Io> struct ConvGradient {
  const Io* dy;
  int64_t stride;     // between tokens of dy
  const Io* dnext;    // [S,W,D]: of the state that comes out, or null
  Io* dx;             // [tokens,D]
  Io* dstate;         // [S,W,D], or null
  Real<Io>* dweight;  // [W,D], added to
  Real<Io>* dbias;    // [D], added to, or null
  Real<Io>* scratch;  // [W,D]
};

// Rows of V logits that become their gradient, (softmax x - onehot target) share, if it is wanted.
template <class Io> struct CrossEntropy {
  Io* x;                  // [rows,V]
  const int64_t* target;  // [rows]; below 0: none, and everything is 0
  Real<Io>*loss, *right;  // [rows]: log sum exp x - x[target]; 1 where x is largest at the target
  int64_t V;
  Real<Io> share;
  bool gradient;
};

// AdamW at one step: m <- b1 m + (1-b1) g, v <- b2 v + (1-b2) g^2,
// p <- keep p - rate m / (sqrt(v) / root + eps), with g = scale grad.
struct AdamwStep {
  float beta1, rest1, beta2, rest2, eps, scale, keep, rate, root;  // rest = 1 - beta
};

// One instruction set's kernels. Rows and tokens are first .. last-1; outputs are contiguous.
template <class Io> struct Table {
  void (*norm)(const Norm<Io>&, int64_t first, int64_t last, Io* y);
  // Adds to dweight [D] unless it is null.
  void (*norm_backward)(const Norm<Io>&, int64_t first, int64_t last, const Io* dy,
                        int64_t dy_stride, Io* dx, Real<Io>* dweight);
  void (*swiglu)(const Swiglu<Io>&, int64_t first, int64_t last, Io* h);
  void (*swiglu_backward)(const Swiglu<Io>&, int64_t first, int64_t last, const Io* dh,
                          int64_t dh_stride, Io* dgate, Io* dup, int64_t d_stride);
  void (*conv)(const Conv<Io>&, int64_t first, int64_t last, Io* y);
  void (*conv_backward)(const Conv<Io>&, int64_t first, int64_t last, const ConvGradient<Io>&);
  void (*cross_entropy)(const CrossEntropy<Io>&, int64_t first, int64_t last);
  void (*exp)(const Io* x, int64_t n, Io* y);
};

struct FlatTable {
  void (*adamw)(const AdamwStep&, int64_t n, float* p, const float* grad, float* m, float* v);
  double (*sum_of_squares)(const float* x, int64_t n);
};

LRNN_EVERY_ISA(extern const Table<float> kFloat; extern const Table<double> kDouble;
               extern const Table<Bf16> kBf16; extern const FlatTable kFlat;)

template <class Io> const Table<Io>& table(Isa isa = best_isa());
template <> inline const Table<float>& table(Isa isa) { return LRNN_OF_ISA(isa, kFloat); }
template <> inline const Table<double>& table(Isa isa) { return LRNN_OF_ISA(isa, kDouble); }
template <> inline const Table<Bf16>& table(Isa isa) { return LRNN_OF_ISA(isa, kBf16); }
inline const FlatTable& flat_table(Isa isa = best_isa()) { return LRNN_OF_ISA(isa, kFlat); }

}  // namespace lrnn::kernels::rows
