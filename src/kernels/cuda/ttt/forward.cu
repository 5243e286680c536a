#include <algorithm>

#include "kernels/cuda/ttt/ttt.cuh"

// Piece by piece of the mini-batches, W in shared memory, as kernels/ttt.h has it.
namespace lrnn::kernels::cuda {
namespace {

template <class R> __global__ void __launch_bounds__(kTttThreads) forward(const TttForward p) {
  extern __shared__ __align__(16) unsigned char memory[];
  const TttBlock<R> block{int(p.D), ttt_row(p.D)};
  const int D = block.D, row = block.row, m = int(p.mini_batch), size = m * row;
  R* const W = reinterpret_cast<R*>(memory);  // [D][row]
  R* const k = W + D * row;                   // [m][row] each
  R *const q = k + size, *const step = q + size, *const x = step + size;
  R* const C = x + size;  // [m][m]
  R *const b = C + m * m, *const weight = b + D, *const bias = weight + D, *const eta = bias + D;
  const TttPlace<R> at(p);
  const int64_t now = at.state(p, 0);
  for (int i = threadIdx.x; i < D * D; i += blockDim.x)
    W[i / D * row + i % D] = p.W ? static_cast<const R*>(p.W)[now * D * D + i] : R(0);
  for (int i = threadIdx.x; i < D; i += blockDim.x) {
    b[i] = p.b ? static_cast<const R*>(p.b)[now * D + i] : R(0);
    weight[i] = static_cast<const R*>(p.weight)[at.h * D + i];
    bias[i] = static_cast<const R*>(p.bias)[at.h * D + i];
  }
  __syncthreads();
  R* const final_W = static_cast<R*>(p.final_W);
  R* const final_b = static_cast<R*>(p.final_b);
  const TttMatrix<R> own{W, b, row};
  // f(element, value) of a matrix and its biases below it.
  const auto numbers = [&](const TttMatrix<R>& of, auto&& f) {
    for (int i = threadIdx.x; i < D * D; i += blockDim.x)
      f(i, of.W ? of.W[i / D * of.row + i % D] : R(0));
    for (int i = threadIdx.x; i < D; i += blockDim.x) f(D * D + i, of.b ? of.b[i] : R(0));
  };
  const auto store_state = [&](const TttMatrix<R>& of, int which) {
    const int64_t state = at.state(p, which);
    numbers(of, [&](int i, R value) {
      (i < D * D ? final_W[state * D * D + i] : final_b[state * D + i - D * D]) = value;
    });
  };
  const int64_t pieces = at.pieces();
  if (pieces == 0) store_state(ttt_first(p, at, false, own), 1);
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const int n = at.count(piece);
    const int64_t t0 = at.begin(piece);
    const TttMatrix<R> first = ttt_first(p, at, at.whole(piece), own);
    if (p.kept) {
      R* const to = static_cast<R*>(p.kept) + ((at.slot + piece) * p.H + at.h) * (D + 1) * D;
      numbers(own, [&](int i, R value) { to[i] = value; });
    }
    if (piece + 1 == pieces) store_state(first, 1);
    block.each(n, [&](int t, int i) {
      k[t * row + i] = ttt_load<R>(p, p.k, at.span, at.h, t0 + t, i);
      step[t * row + i] = ttt_load<R>(p, p.v, at.span, at.h, t0 + t, i);
      if (p.q.data) q[t * row + i] = ttt_load<R>(p, p.q, at.span, at.h, t0 + t, i);
    });
    for (int t = threadIdx.x; t < n; t += blockDim.x)
      eta[t] = static_cast<const R*>(p.eta)[ttt_gate(p, at.span, at.h, t0 + t)];
    __syncthreads();
    block.through(k, n, first, [&](int t, int d, R sum) { x[t * row + d] = sum; });
    if (p.q.data) block.pairs(q, k, n, [&](int t, int s, R sum) { C[t * m + s] = sum + 1; });
    __syncthreads();
    block.by_row(n, [&](int t) {
      R *const x_t = x + t * row, *const e = step + t * row, *const k_t = k + t * row;
      const R one_over = block.normalise(x_t, p.eps);
      block.elements([&](int i) { e[i] = k_t[i] + weight[i] * x_t[i] + bias[i] - e[i]; });
      ttt_gradient(block, weight, e, x_t, one_over, [&](int i, R G) { e[i] = -eta[t] * G; });
    });
    __syncthreads();
    if (p.q.data) {
      block.through(q, n, own, [&](int t, int d, R sum) {
        for (int s = 0; s <= t; ++s) sum += C[t * m + s] * step[s * row + d];
        x[t * row + d] = sum;
      });
      __syncthreads();
      block.by_row(n, [&](int t) {
        R* const y = x + t * row;
        block.normalise(y, p.eps);
        block.elements([&](int i) {
          ttt_store<R>(p, p.o, at.span, at.h, t0 + t, i,
                       q[t * row + i] + weight[i] * y[i] + bias[i]);
        });
      });
    }
    // Nobody reads W any more: the outputs are behind the barrier above, or there are none.
    block.outer(k, step, n, [&](int i, int d, R sum) { (i < D ? W[i * row + d] : b[d]) += sum; });
    __syncthreads();
  }
  store_state(own, 0);
  if (at.h == 0 && threadIdx.x == 0)
    static_cast<R*>(p.final_position)[at.s] = R((at.position + at.span.length) % m);
}

// Numbers in shared memory.
template <class R> size_t forward_bytes(const TttInputs& p) {
  const int64_t row = ttt_row(p.D), m = p.mini_batch;
  return sizeof(R) * size_t(p.D * row + 4 * m * row + m * m + 3 * p.D + m);
}

template <class R> void launch(const TttForward& p, cudaStream_t stream) {
  const size_t bytes = forward_bytes<R>(p);
  allow_shared(forward<R>, bytes);
  forward<R><<<unsigned(p.S * p.H), kTttThreads, bytes, stream>>>(p);
}

}  // namespace

void ttt_forward(const TttForward& p, void* stream) {
  if (p.S == 0 || p.H == 0) return;
  check(p.S * p.H < (int64_t(1) << 31), "[ttt] too many sequences and heads for a grid");
  const auto on = static_cast<cudaStream_t>(stream);
  p.type == Type::kFloat64 ? launch<double>(p, on) : launch<float>(p, on);
  check_launch("ttt");
}

}  // namespace lrnn::kernels::cuda
