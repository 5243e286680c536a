#include <algorithm>

#include "kernels/cuda/ttt/ttt.cuh"

// Piece by piece from the last; kernels/cpu/ttt_backward.cpp has the lines. W of a piece, as
// forward kept it, and the gradient of W lie in shared memory.
namespace lrnn::kernels::cuda {
namespace {

template <class R> struct TttShared {
  R *W, *dW;                                    // [D][row]
  R *k, *q, *e, *x, *G, *P, *dG;                // [m][row] each
  R *C, *read;                                  // [m][m]: k_s q_t + 1, and G_s dP_t
  R *b, *db, *weight, *bias, *dweight, *dbias;  // [D]
  R *eta, *one_over, *P_one_over;               // [m]

  __device__ __forceinline__ TttShared(R* memory, int D, int row, int m) {
    const auto take = [&](int n) {
      R* const out = memory;
      memory += n;
      return out;
    };
    W = take(D * row), dW = take(D * row);
    k = take(m * row), q = take(m * row), e = take(m * row), x = take(m * row);
    G = take(m * row), P = take(m * row), dG = take(m * row);
    C = take(m * m), read = take(m * m);
    b = take(D), db = take(D), weight = take(D), bias = take(D), dweight = take(D), dbias = take(D);
    eta = take(m), one_over = take(m), P_one_over = take(m);
  }
  static size_t bytes(const TttInputs& p) {
    const int64_t row = ttt_row(p.D), m = p.mini_batch;
    return sizeof(R) * size_t(2 * p.D * row + 7 * m * row + 2 * m * m + 6 * p.D + 3 * m);
  }
};

template <class R> class TttBackwardBlock {
 public:
  __device__ __forceinline__ TttBackwardBlock(const TttBackward& problem, R* memory)
      : p(problem),
        at(problem),
        block{int(problem.D), ttt_row(problem.D)},
        D(block.D),
        row(block.row),
        m(int(problem.mini_batch)),
        my(memory, D, row, m) {}

  __device__ __forceinline__ void run() {
    begin();
    const int64_t pieces = at.pieces();
    for (int64_t i = pieces - 1; i >= 0; --i) piece(i, i + 1 == pieces);
    end(pieces);
    R* const norm = static_cast<R*>(p.dnorm) + (at.s * p.H + at.h) * 2 * D;
    for (int i = threadIdx.x; i < D; i += blockDim.x)
      norm[i] = my.dweight[i], norm[D + i] = my.dbias[i];
  }

 private:
  // The gradient that a final state's reader asks of matrix `which`; with i >= D * D of its biases.
  __device__ __forceinline__ R asked(int which, int i) const {
    const int64_t state = at.state(p, which);
    if (i < D * D)
      return p.d_final_W ? static_cast<const R*>(p.d_final_W)[state * D * D + i] : R(0);
    return p.d_final_b ? static_cast<const R*>(p.d_final_b)[state * D + i - D * D] : R(0);
  }
  __device__ __forceinline__ void answer(int which, int i, R value) const {
    const int64_t state = at.state(p, which);
    if (i < D * D) {
      if (p.dW) static_cast<R*>(p.dW)[state * D * D + i] = value;
    } else if (p.db) {
      static_cast<R*>(p.db)[state * D + i - D * D] = value;
    }
  }

  __device__ __forceinline__ void begin() const {
    for (int i = threadIdx.x; i < D * D; i += blockDim.x) my.dW[i / D * row + i % D] = asked(0, i);
    for (int i = threadIdx.x; i < D; i += blockDim.x) {
      my.db[i] = asked(0, D * D + i), my.dweight[i] = my.dbias[i] = 0;
      my.weight[i] = static_cast<const R*>(p.weight)[at.h * D + i];
      my.bias[i] = static_cast<const R*>(p.bias)[at.h * D + i];
    }
    __syncthreads();
  }

  // The weights now, and those when the mini-batch began, where no piece has answered for them.
  __device__ __forceinline__ void end(int64_t pieces) const {
    for (int i = threadIdx.x; i < (D + 1) * D; i += blockDim.x) {
      answer(0, i, i < D * D ? my.dW[i / D * row + i % D] : my.db[i - D * D]);
      if (pieces == 0 || at.position == 0) answer(1, i, pieces == 0 ? asked(1, i) : R(0));
    }
  }

  __device__ __forceinline__ void load(int64_t piece, int64_t t0, int n) const {
    const R* const kept =
        static_cast<const R*>(p.kept) + ((at.slot + piece) * p.H + at.h) * (D + 1) * D;
    for (int i = threadIdx.x; i < D * D; i += blockDim.x) my.W[i / D * row + i % D] = kept[i];
    for (int i = threadIdx.x; i < D; i += blockDim.x) my.b[i] = kept[D * D + i];
    block.each(n, [&](int t, int i) {
      const int e = t * row + i;
      my.k[e] = ttt_load<R>(p, p.k, at.span, at.h, t0 + t, i);
      my.e[e] = ttt_load<R>(p, p.v, at.span, at.h, t0 + t, i);
      my.q[e] = p.q.data ? ttt_load<R>(p, p.q, at.span, at.h, t0 + t, i) : R(0);
    });
    for (int t = threadIdx.x; t < n; t += blockDim.x)
      my.eta[t] = static_cast<const R*>(p.eta)[ttt_gate(p, at.span, at.h, t0 + t)];
  }

  // Forward again: x, e, G and the normed P.
  __device__ __forceinline__ void again(int n, const TttMatrix<R>& first) const {
    block.through(my.k, n, first, [&](int t, int d, R sum) { my.x[t * row + d] = sum; });
    if (p.q.data) {
      const TttMatrix<R> now{my.W, my.b, row};
      block.through(my.q, n, now, [&](int t, int d, R sum) { my.P[t * row + d] = sum; });
      block.pairs(my.q, my.k, n, [&](int t, int s, R sum) { my.C[t * m + s] = sum + 1; });
    }
    __syncthreads();
    block.by_row(n, [&](int t) {
      R *const x = my.x + t * row, *const e = my.e + t * row, *const k = my.k + t * row;
      const R one_over = block.normalise(x, p.eps);
      if (threadIdx.x % 32 == 0) my.one_over[t] = one_over;
      block.elements([&](int i) { e[i] = k[i] + my.weight[i] * x[i] + my.bias[i] - e[i]; });
      ttt_gradient(block, my.weight, e, x, one_over, [&](int i, R G) { my.G[t * row + i] = G; });
    });
    __syncthreads();
    if (!p.q.data) return;
    block.each(n, [&](int t, int d) {
      R sum = 0;
      for (int s = 0; s <= t; ++s) sum += my.C[t * m + s] * my.eta[s] * my.G[s * row + d];
      my.P[t * row + d] -= sum;
    });
    __syncthreads();
    block.by_row(n, [&](int t) {
      const R one_over = block.normalise(my.P + t * row, p.eps);
      if (threadIdx.x % 32 == 0) my.P_one_over[t] = one_over;
    });
    __syncthreads();
  }

  __device__ __forceinline__ R d_o(int64_t t, int i) const {
    return ttt_load<R>(p, p.d_o, at.span, at.h, t, i);
  }

  // P becomes dP, and `read` is there.
  __device__ __forceinline__ void outputs(int64_t t0, int n) const {
    for (int i = threadIdx.x; i < D; i += blockDim.x)
      for (int t = 0; t < n; ++t) {
        const R d = d_o(t0 + t, i);
        my.dweight[i] += d * my.P[t * row + i], my.dbias[i] += d;
      }
    __syncthreads();
    block.by_row(n, [&](int t) {
      R* const y = my.P + t * row;
      const auto d = [&](int i) { return d_o(t0 + t, i) * my.weight[i]; };
      const R mean = block.mean(d), share = block.mean([&](int i) { return d(i) * y[i]; });
      block.elements([&](int i) { y[i] = my.P_one_over[t] * (d(i) - mean - share * y[i]); });
    });
    __syncthreads();
    block.pairs(my.P, my.G, n, [&](int t, int s, R sum) { my.read[t * m + s] = sum; });
  }

  // From R = k dW + db of a row, which dG holds, to dZ in its place; leaves weight dg in x, and in
  // e what the norm's weight gets.
  __device__ __forceinline__ void through_gradient(int64_t t0, int n, int t) const {
    R *const h = my.dG + t * row, *const x = my.x + t * row, *const e = my.e + t * row;
    const R *const G = my.G + t * row, one_over = my.one_over[t], eta = my.eta[t];
    R deta = -R(D) * block.mean([&](int i) { return h[i] * G[i]; });
    if (p.q.data)
      for (int s = t; s < n; ++s) deta -= my.C[s * m + t] * my.read[s * m + t];
    if (threadIdx.x % 32 == 0) static_cast<R*>(p.deta)[ttt_gate(p, at.span, at.h, t0 + t)] = deta;
    block.elements([&](int i) {
      R sum = h[i];
      if (p.q.data)
        for (int s = t; s < n; ++s) sum += my.C[s * m + t] * my.P[s * row + i];
      h[i] = -eta * sum;
    });
    const auto g = [&](int i) { return my.weight[i] * e[i]; };
    const R gx = block.mean([&](int i) { return g(i) * x[i]; }),
            hx = block.mean([&](int i) { return h[i] * x[i]; }),
            hm = block.mean([&](int i) { return h[i]; }),
            droot = -one_over * block.mean([&](int i) { return h[i] * G[i]; });  // over D
    const auto dg = [&](int i) { return one_over * (h[i] - hm - hx * x[i]); };
    const auto dx = [&](int i) {
      return my.weight[i] * my.weight[i] * dg(i) - one_over * (gx * h[i] + hx * g(i));
    };
    const R mean = block.mean(dx), share = block.mean([&](int i) { return dx(i) * x[i]; });
    block.elements([&](int i) {
      const R d = dg(i), weight = my.weight[i];
      const R dZ = one_over * (dx(i) - mean - share * x[i]) + droot * x[i];
      e[i] = d * (e[i] + weight * x[i]);
      x[i] = weight * d, h[i] = dZ;
      ttt_store<R>(p, p.dv, at.span, at.h, t0 + t, i, -weight * d);
    });
  }

  __device__ __forceinline__ void store_rows(int64_t t0, int n, const TttMatrix<R>& first) const {
    const TttMatrix<R> now{my.W, my.b, row}, gradient{my.dW, my.db, row};
    if (p.q.data)
      block.transposed(my.P, n, now, [&](int t, int d, R sum) {
        sum += d_o(t0 + t, d);
        for (int s = 0; s <= t; ++s) sum -= my.eta[s] * my.read[t * m + s] * my.k[s * row + d];
        ttt_store<R>(p, p.dq, at.span, at.h, t0 + t, d, sum);
      });
    // A thread finds in x what it left there itself: both products are shared out alike.
    block.transposed(my.G, n, gradient, [&](int t, int d, R sum) {
      if (p.q.data)
        for (int s = t; s < n; ++s) sum += my.read[s * m + t] * my.q[s * row + d];
      my.x[t * row + d] -= my.eta[t] * sum;
    });
    block.transposed(my.dG, n, first, [&](int t, int d, R sum) {
      ttt_store<R>(p, p.dk, at.span, at.h, t0 + t, d, my.x[t * row + d] + sum);
    });
  }

  __device__ __forceinline__ void piece(int64_t i, bool last) const {
    const int n = at.count(i);
    const int64_t t0 = at.begin(i);
    const bool whole = at.whole(i);
    const TttMatrix<R> now{my.W, my.b, row}, gradient{my.dW, my.db, row},
        first = ttt_first(p, at, whole, now);
    load(i, t0, n);
    __syncthreads();
    again(n, first);
    if (p.q.data) outputs(t0, n);
    block.through(my.k, n, gradient, [&](int t, int d, R sum) { my.dG[t * row + d] = sum; });
    __syncthreads();
    block.by_row(n, [&](int t) { through_gradient(t0, n, t); });
    __syncthreads();
    for (int j = threadIdx.x; j < D; j += blockDim.x)
      for (int t = 0; t < n; ++t)
        my.dweight[j] += my.e[t * row + j], my.dbias[j] += my.x[t * row + j];
    __syncthreads();
    store_rows(t0, n, first);
    __syncthreads();
    if (p.q.data)
      block.outer(my.q, my.P, n,
                  [&](int x, int d, R sum) { (x < D ? my.dW[x * row + d] : my.db[d]) += sum; });
    block.outer(my.k, my.dG, n, [&](int x, int d, R sum) {
      if (last) sum += asked(1, x * D + d);
      if (whole)
        (x < D ? my.dW[x * row + d] : my.db[d]) += sum;
      else
        answer(1, x * D + d, sum);
    });
    __syncthreads();
  }

  const TttBackward& p;
  const TttPlace<R> at;
  const TttBlock<R> block;
  const int D, row, m;
  const TttShared<R> my;
};

template <class R> __global__ void __launch_bounds__(kTttThreads) backward(const TttBackward p) {
  extern __shared__ __align__(16) unsigned char memory[];
  TttBackwardBlock<R>(p, reinterpret_cast<R*>(memory)).run();
}

template <class R> void launch(const TttBackward& p, cudaStream_t stream) {
  const size_t bytes = TttShared<R>::bytes(p);
  allow_shared(backward<R>, bytes);
  backward<R><<<unsigned(p.S * p.H), kTttThreads, bytes, stream>>>(p);
}

}  // namespace

// Backward needs more than forward.
bool ttt_fits(const TttInputs& p) {
  const size_t bytes =
      p.type == Type::kFloat64 ? TttShared<double>::bytes(p) : TttShared<float>::bytes(p);
  return bytes <= size_t(chip().shared);
}

void ttt_backward(const TttBackward& p, void* stream) {
  if (p.S == 0 || p.H == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  p.type == Type::kFloat64 ? launch<double>(p, on) : launch<float>(p, on);
  check_launch("ttt");
}

}  // namespace lrnn::kernels::cuda
