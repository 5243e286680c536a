#include <algorithm>

#include "kernels/cuda/slstm/slstm.h"
#include "kernels/cuda/tile/functions.cuh"
#include "kernels/cuda/tile/sequences.cuh"

// A block has one head and kRows sequences: an element of R that was loaded serves all of them.
namespace lrnn::kernels::cuda {
namespace {

__device__ __forceinline__ float tanh_of(float x) { return tanhf(x); }
__device__ __forceinline__ double tanh_of(double x) { return tanh(x); }

// The first `kept` elements lie in shared memory.
template <class R> struct Matrix {
  const R *shared, *global;
  int kept, all;

  __device__ __forceinline__ void fill(R* to) {
    shared = to;
    for (int i = threadIdx.x; i < kept; i += blockDim.x) to[i] = global[i];
  }
  // sum_x M[base + x stride] vectors[r][x] for every r.
  template <int kRows>
  __device__ __forceinline__ void product(int base, int stride, int D, const R* vectors, int apart,
                                          R (&sum)[kRows]) const {
    if (kept == all) {
#pragma unroll 4
      for (int x = 0; x < D; ++x) add(shared[base + x * stride], vectors, x, apart, sum);
    } else {
#pragma unroll 4
      for (int x = 0; x < D; ++x) {
        const int at = base + x * stride;
        add(at < kept ? shared[at] : global[at], vectors, x, apart, sum);
      }
    }
  }

 private:
  template <int kRows>
  static __device__ __forceinline__ void add(R w, const R* vectors, int x, int apart,
                                             R (&sum)[kRows]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum[r] += w * vectors[r * apart + x];
  }
};

// The sequences of a block.
template <int kRows> struct Group {
  int64_t h, first;
  Span span[kRows];
  int64_t longest = 0;

  __device__ __forceinline__ explicit Group(const SlstmInputs& p) {
    const int64_t groups = (p.S + kRows - 1) / kRows;
    h = blockIdx.x / groups, first = (blockIdx.x - h * groups) * kRows;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      span[r] = first + r < p.S ? span_of(p, first + r) : Span{0, 0, 0};
      longest = max(longest, span[r].length);
    }
  }
  // Of row r, which only the run of the kernel knows.
  __device__ __forceinline__ Span of(int r) const {
    Span found = span[0];
#pragma unroll
    for (int i = 1; i < kRows; ++i)
      if (r == i) found = span[i];
    return found;
  }
};

// How the numbers of one step of one unit depend on those before.
template <class R> struct Cell {
  R input, forget, tanh_z, sigmoid_o, a, m;
  bool took_input;

  __device__ __forceinline__ Cell(R i, R f, R z, R o, R n_before, R m_before) {
    a = log_sigmoid(f) + m_before;
    took_input = n_before == R(0) || i >= a;
    m = took_input ? i : a;
    input = min(exp_of(i - m), R(1)), forget = min(exp_of(a - m), R(1));
    tanh_z = tanh_of(z), sigmoid_o = sigmoid(o);
  }
};

template <class R, int kRows>
__global__ void __launch_bounds__(1024) forward(const SlstmForward p, int kept) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int D = int(p.D);
  R* const h = reinterpret_cast<R*>(memory);  // [kRows][D]
  R* const cnm = h + kRows * D;               // [3][kRows][D]
  R* const gates = cnm + 3 * kRows * D;       // [kRows][4 D]
  const Group<kRows> group(p);
  Matrix<R> matrix{nullptr, static_cast<const R*>(p.R) + group.h * 4 * D * D, kept, 4 * D * D};
  matrix.fill(gates + kRows * 4 * D);
  const R* const bias = p.bias ? static_cast<const R*>(p.bias) + group.h * 4 * D : nullptr;
  const auto state_at = [&](int r, int part, int d) {
    return (((group.first + r) * 4 + part) * p.H + group.h) * D + d;
  };
  for (int u = threadIdx.x; u < kRows * D; u += blockDim.x) {
    const int r = u / D, d = u % D;
    const bool given = p.state && group.first + r < p.S;
    const R* const from = static_cast<const R*>(p.state);
    h[u] = given ? from[state_at(r, 0, d)] : R(0);
    for (int part = 0; part < 3; ++part)
      cnm[part * kRows * D + u] = given ? from[state_at(r, part + 1, d)] : R(0);
  }
  // What the gates get from the input at step t, for column j.
  const auto input = [&](int64_t t, int j, R(&x)[kRows]) {
    const int gate = j / D, d = j % D;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const Span& span = group.span[r];
      x[r] = t < span.length ? load_as<R>(p.type, p.wx.data,
                                          row_at(p.wx, span.b, span.t0 + t, gate, group.h) + d)
                             : R(0);
    }
  };
  const bool one_each = 4 * D <= int(blockDim.x), has_one = int(threadIdx.x) < 4 * D;
  R next[kRows] = {};
  if (one_each && has_one) input(0, threadIdx.x, next);
  __syncthreads();
  for (int64_t t = 0; t < group.longest; ++t) {
    for (int j = threadIdx.x; j < 4 * D; j += blockDim.x) {
      R sum[kRows];
      if (one_each) {  // it was fetched while the step before was computed
#pragma unroll
        for (int r = 0; r < kRows; ++r) sum[r] = next[r];
        if (t + 1 < group.longest) input(t + 1, j, next);
      } else {
        input(t, j, sum);
      }
      matrix.product(j, 4 * D, D, h, D, sum);
#pragma unroll
      for (int r = 0; r < kRows; ++r) gates[r * 4 * D + j] = sum[r] + (bias ? bias[j] : R(0));
    }
    __syncthreads();
    for (int u = threadIdx.x; u < kRows * D; u += blockDim.x) {
      const int r = u / D, d = u % D;
      const Span span = group.of(r);
      if (t >= span.length) continue;
      const R* const raw = gates + r * 4 * D + d;
      R &c = cnm[u], &n = cnm[kRows * D + u], &m = cnm[2 * kRows * D + u];
      const Cell<R> cell(raw[0], raw[D], raw[2 * D], raw[3 * D], n, m);
      c = cell.forget * c + cell.input * cell.tanh_z, n = cell.forget * n + cell.input, m = cell.m;
      h[u] = cell.sigmoid_o * c / n;
      store_as<R>(p.type, p.h.data, row_at(p.h, span.b, span.t0 + t, 0, group.h) + d, h[u]);
      if (!p.steps) continue;
      R* const step =
          static_cast<R*>(p.steps) + ((span.b * p.H + group.h) * p.T + span.t0 + t) * 4 * D + d;
      step[0] = h[u], step[D] = c, step[2 * D] = n, step[3 * D] = m;
    }
    __syncthreads();
  }
  for (int u = threadIdx.x; u < kRows * D; u += blockDim.x) {
    const int r = u / D, d = u % D;
    if (group.first + r >= p.S) continue;
    R* const to = static_cast<R*>(p.final_state);
    to[state_at(r, 0, d)] = h[u];
    for (int part = 0; part < 3; ++part) to[state_at(r, part + 1, d)] = cnm[part * kRows * D + u];
  }
}

template <class R, int kRows>
__global__ void __launch_bounds__(1024)
    backward(const SlstmBackward p, const R* transposed, R* gates, int kept) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int D = int(p.D);
  R* const dstate = reinterpret_cast<R*>(memory);  // [4][kRows][D]: of h (but through R), c, n, m
  R* const dgates = dstate + 4 * kRows * D;        // [kRows][4 D]
  R* const through = dgates + kRows * 4 * D;       // [4][kRows][D]: of h through R, by gate
  const Group<kRows> group(p);
  Matrix<R> matrix{nullptr, transposed + group.h * 4 * D * D, kept, 4 * D * D};
  matrix.fill(through + 4 * kRows * D);
  const auto state_at = [&](int r, int part, int d) {
    return (((group.first + r) * 4 + part) * p.H + group.h) * D + d;
  };
  for (int u = threadIdx.x; u < kRows * D; u += blockDim.x) {
    const int r = u / D, d = u % D;
    for (int part = 0; part < 4; ++part) {
      through[part * kRows * D + u] = 0;
      dstate[part * kRows * D + u] =
          p.d_final_state && group.first + r < p.S
              ? static_cast<const R*>(p.d_final_state)[state_at(r, part, d)]
              : R(0);
    }
  }
  __syncthreads();
  for (int64_t t = group.longest - 1; t >= 0; --t) {
    for (int u = threadIdx.x; u < kRows * D; u += blockDim.x) {
      const int r = u / D, d = u % D;
      const Span span = group.of(r);
      R* const out = dgates + r * 4 * D + d;
      if (t >= span.length) {
        out[0] = out[D] = out[2 * D] = out[3 * D] = 0;
        continue;
      }
      const int64_t token = span.t0 + t;
      R* const raw = gates + ((group.h * p.B + span.b) * p.T + token) * 4 * D + d;
      const R* const after =
          static_cast<const R*>(p.steps) + ((span.b * p.H + group.h) * p.T + token) * 4 * D + d;
      R before[4] = {};
      for (int part = 1; part < 4; ++part) {
        if (t > 0)
          before[part] = after[(part - 4) * D];
        else if (p.state)
          before[part] = static_cast<const R*>(p.state)[state_at(r, part, d)];
      }
      const R c = after[D], n = after[2 * D];
      const Cell<R> cell(raw[0], raw[D], raw[2 * D], raw[3 * D], before[2], before[3]);
      R dh = dstate[u];
      for (int gate = 0; gate < 4; ++gate) dh += through[gate * kRows * D + u];
      if (p.dh.data)
        dh += load_as<R>(p.type, p.dh.data, row_at(p.dh, span.b, token, 0, group.h) + d);
      const R so = cell.sigmoid_o, dc = dstate[kRows * D + u] + dh * so / n,
              dn = dstate[2 * kRows * D + u] - dh * so * c / (n * n);
      const R dinput = (dc * cell.tanh_z + dn) * cell.input;  // of i - m
      // Beyond 1, where nothing was there to forget, the clamp stops the gradient.
      const R dforget =
          cell.a > cell.m ? R(0) : (dc * before[1] + dn * before[2]) * cell.forget;  // of a - m
      const R dm = dstate[3 * kRows * D + u] - dinput - dforget;
      const R da = dforget + (cell.took_input ? R(0) : dm);
      out[0] = dinput + (cell.took_input ? dm : R(0));
      out[D] = da * sigmoid(-raw[D]);
      out[2 * D] = dc * cell.input * (1 - cell.tanh_z * cell.tanh_z);
      out[3 * D] = dh * c / n * so * (1 - so);
      for (int gate = 0; gate < 4; ++gate) raw[gate * D] = out[gate * D];
      dstate[u] = 0, dstate[kRows * D + u] = dc * cell.forget;
      dstate[2 * kRows * D + u] = dn * cell.forget, dstate[3 * kRows * D + u] = da;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < 4 * D; j += blockDim.x) {
      const int gate = j / D, d = j % D;
      R sum[kRows] = {};
      matrix.product(gate * D * D + d, D, D, dgates + gate * D, 4 * D, sum);
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (t < group.span[r].length) through[(gate * kRows + r) * D + d] = sum[r];
    }
    __syncthreads();
  }
  if (!p.dstate) return;
  for (int u = threadIdx.x; u < kRows * D; u += blockDim.x) {
    const int r = u / D, d = u % D;
    if (group.first + r >= p.S) continue;
    R* const to = static_cast<R*>(p.dstate);
    R dh = dstate[u];
    for (int gate = 0; gate < 4; ++gate) dh += through[gate * kRows * D + u];
    to[state_at(r, 0, d)] = dh;
    for (int part = 1; part < 4; ++part) to[state_at(r, part, d)] = dstate[part * kRows * D + u];
  }
}

// One block per sequence and head.
template <class R>
__global__ void __launch_bounds__(256) previous(const SlstmInputs p, const R* steps, R* to) {
  const int64_t s = blockIdx.x / p.H, h = blockIdx.x - s * p.H, D = p.D;
  const Span span = span_of(p, s);
  for (int64_t i = threadIdx.x; i < span.length * D; i += blockDim.x) {
    const int64_t t = i / D, d = i - t * D, token = span.t0 + t;
    R x = 0;
    if (t > 0)
      x = steps[((span.b * p.H + h) * p.T + token - 1) * 4 * D + d];
    else if (p.state)
      x = static_cast<const R*>(p.state)[(s * 4 * p.H + h) * D + d];
    to[((h * p.B + span.b) * p.T + token) * D + d] = x;
  }
}

// What a launch needs. `vectors`: numbers per row and unit beside the matrix.
struct Launch {
  unsigned blocks, threads;
  size_t bytes;
  int kept;
};

template <class R, class Kernel>
Launch plan(Kernel* kernel, const SlstmInputs& p, int rows, int vectors) {
  const int64_t D = p.D, blocks = p.H * ((p.S + rows - 1) / rows);
  check(blocks < (int64_t(1) << 31) && 4 * D * D < (int64_t(1) << 31),
        "[slstm] too many sequences, heads or units for a grid");
  const int most = chip().shared;
  const int64_t beside = int64_t(sizeof(R)) * rows * vectors * D;
  check(beside <= most, "[slstm] the GPU kernels have no room for ", D, " units in a head");
  const int64_t kept = std::min(4 * D * D, (most - beside) / int64_t(sizeof(R)));
  const size_t bytes = size_t(beside + kept * int64_t(sizeof(R)));
  allow_shared(kernel, bytes);
  return {unsigned(blocks), unsigned(std::min<int64_t>(1024, (4 * D + 31) / 32 * 32)), bytes,
          int(kept)};
}

constexpr int kTogether = 4;
// Enough blocks for every processor come first.
bool go_together(const SlstmInputs& p) { return p.S * p.H >= 132 * kTogether; }

template <class R, int kRows> void launch(const SlstmForward& p, cudaStream_t stream) {
  const Launch l = plan<R>(forward<R, kRows>, p, kRows, 8);
  forward<R, kRows><<<l.blocks, l.threads, l.bytes, stream>>>(p, l.kept);
}
template <class R, int kRows>
void launch(const SlstmBackward& p, const void* transposed, void* gates, cudaStream_t stream) {
  const Launch l = plan<R>(backward<R, kRows>, p, kRows, 12);
  backward<R, kRows><<<l.blocks, l.threads, l.bytes, stream>>>(p, static_cast<const R*>(transposed),
                                                               static_cast<R*>(gates), l.kept);
}

}  // namespace

void slstm_forward(const SlstmForward& p, void* stream) {
  if (p.S == 0 || p.H == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.type == Type::kFloat64)
    launch<double, 1>(p, on);
  else
    go_together(p) ? launch<float, kTogether>(p, on) : launch<float, 1>(p, on);
  check_launch("slstm");
}

void slstm_previous(const SlstmInputs& p, const void* steps, void* to, void* stream) {
  if (p.S == 0 || p.H == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  check(p.S * p.H < (int64_t(1) << 31), "[slstm] too many sequences and heads for a grid");
  const unsigned blocks = unsigned(p.S * p.H);
  if (p.type == Type::kFloat64)
    previous<double>
        <<<blocks, 256, 0, on>>>(p, static_cast<const double*>(steps), static_cast<double*>(to));
  else
    previous<float>
        <<<blocks, 256, 0, on>>>(p, static_cast<const float*>(steps), static_cast<float*>(to));
  check_launch("slstm");
}

void slstm_backward(const SlstmBackward& p, const void* transposed, void* gates, void* stream) {
  if (p.S == 0 || p.H == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  if (p.type == Type::kFloat64)
    launch<double, 1>(p, transposed, gates, on);
  else
    go_together(p) ? launch<float, kTogether>(p, transposed, gates, on)
                   : launch<float, 1>(p, transposed, gates, on);
  check_launch("slstm");
}

}  // namespace lrnn::kernels::cuda
