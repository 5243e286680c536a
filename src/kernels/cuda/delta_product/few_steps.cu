#include "kernels/cuda/delta_product/delta_product.h"
#include "kernels/cuda/tile/common.cuh"

// A few micro-steps from a given state, as decoding has them: reading the state and writing it is
// all that takes time. A block has 32 columns of a head, in registers: eight neighbouring threads
// read 128 bytes of a row. What a micro-step sums over the rows, S^T k and at the end of a token
// S^T q and k^T q, goes through shared memory once:
//
//   e = v - S^T k,   S += beta k e^T,   o = scale (S^T q + beta (k^T q) e)  with the S before
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32, kLanes = 8, kColumns = 4 * kLanes;
constexpr int kRowsAtOnce = kThreads / kLanes;
constexpr int64_t kMostSteps = 8;

struct Sums {
  float k[kColumns], q[kColumns], kq;
};

// Over the four rows that a warp has at once.
__device__ __forceinline__ float sum_rows(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 8);
  return x + __shfl_xor_sync(0xffffffffu, x, 16);
}

template <int kRows> struct Rows32 {  // this thread's rows of its four columns
  float S[kRows][4];

  // S^T x of this warp's rows, for this thread's columns.
  __device__ __forceinline__ void dot(const float (&x)[kRows], float* out) const {
    float sum[4] = {0, 0, 0, 0};
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int c = 0; c < 4; ++c) sum[c] += S[r][c] * x[r];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      sum[c] = sum_rows(sum[c]);
      if (threadIdx.x % 32 < kLanes) out[c] = sum[c];
    }
  }
};

template <int kRows>
__global__ void __launch_bounds__(kThreads) few_steps(const DeltaProductForward p) {
  __shared__ Sums sums[2][kWarps];
  const int warp = threadIdx.x / 32, first_row = int(threadIdx.x) / kLanes;
  const int own = int(threadIdx.x) % kLanes * 4;  // columns within the block
  const int64_t s = blockIdx.x / unsigned(p.H), h = blockIdx.x % unsigned(p.H);
  const int64_t v = int64_t(blockIdx.y) * kColumns + own;
  const bool inside = v < p.V;
  const int64_t head = (s * p.H + h) * p.K * p.V;
  const auto at = [&](int r) { return head + (first_row + int64_t(r) * kRowsAtOnce) * p.V + v; };
  const auto has = [&](int r) { return inside && first_row + r * kRowsAtOnce < p.K; };

  Rows32<kRows> state;
  const auto* const before = static_cast<const float*>(p.state);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float4 x = before && has(r) ? *reinterpret_cast<const float4*>(before + at(r))
                                      : make_float4(0, 0, 0, 0);
    state.S[r][0] = x.x, state.S[r][1] = x.y, state.S[r][2] = x.z, state.S[r][3] = x.w;
  }
  const auto read = [&](const SharedRows& from, int64_t row, float(&to)[kRows]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t i = first_row + r * kRowsAtOnce;
      const float x = load<float, Bf16>(from.data, row + min(i, p.K - 1));
      to[r] = i < p.K ? x : 0.f;
    }
  };
  const int steps = int(p.T * p.N);
  for (int m = 0; m < steps; ++m) {
    const int64_t t = m / int(p.N), j = m - t * p.N, token = s * p.T + t;
    const bool reads = p.q.data && j == p.N - 1;
    float k[kRows], q[kRows], value[4];
    read(p.k, row_at(p.k, s, t, j, h), k);
    if (reads) read(p.q, row_at(p.q, s, t, 0, h), q);
#pragma unroll
    for (int c = 0; c < 4; ++c)
      value[c] = load<float, Bf16>(p.v.data, row_at(p.v, s, t, j, h) + min(v + c, p.V - 1));
    const float beta = static_cast<const float*>(p.beta)[(token * p.N + j) * p.H + h];
    if (p.log_gate && j == 0) {
      const auto* const log_gate =
          static_cast<const float*>(p.log_gate) + (token * p.H + h) * (p.channels ? p.K : 1);
      float gate = p.channels ? 1 : expf(log_gate[0]);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (p.channels) gate = expf(log_gate[min(first_row + r * kRowsAtOnce, int(p.K) - 1)]);
#pragma unroll
        for (int c = 0; c < 4; ++c) state.S[r][c] *= gate;
      }
    }
    Sums& mine = sums[m % 2][warp];  // those before may still be read
    state.dot(k, mine.k + own);
    if (reads) {
      state.dot(q, mine.q + own);
      float kq = 0;
#pragma unroll
      for (int r = 0; r < kRows; ++r) kq += k[r] * q[r];
      kq = sum_rows(kq);
      if (threadIdx.x % 32 == 0) mine.kq = kq;
    }
    __syncthreads();
    float error[4], out[4] = {0, 0, 0, 0}, kq = 0;
#pragma unroll
    for (int c = 0; c < 4; ++c) error[c] = value[c];
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const Sums& of = sums[m % 2][w];
#pragma unroll
      for (int c = 0; c < 4; ++c) error[c] -= of.k[own + c];
      if (!reads) continue;
      kq += of.kq;
#pragma unroll
      for (int c = 0; c < 4; ++c) out[c] += of.q[own + c];
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int c = 0; c < 4; ++c) state.S[r][c] += k[r] * (beta * error[c]);
    if (reads && inside && threadIdx.x < kLanes) {
      const int64_t to = row_at(p.o, s, t, 0, h) + v;
#pragma unroll
      for (int c = 0; c < 4; ++c)
        static_cast<uint16_t*>(p.o.data)[to + c] =
            to_bf16(float(p.scale) * (out[c] + kq * (beta * error[c])));
    }
  }
  auto* const after = static_cast<float*>(p.final_state);
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    if (has(r))
      *reinterpret_cast<float4*>(after + at(r)) =
          make_float4(state.S[r][0], state.S[r][1], state.S[r][2], state.S[r][3]);
}

}  // namespace

bool few_steps_fit(const DeltaProductInputs& p) {
  return p.type == Type::kBFloat16 && !p.cu_seqlens && p.T * p.N <= kMostSteps && p.K <= 256 &&
         p.V % 4 == 0 && p.S * p.H < int64_t(1) << 31 && p.V <= 65535 * kColumns &&
         reinterpret_cast<uintptr_t>(p.state) % 16 == 0;
}

void few_steps_forward(const DeltaProductForward& p, void* stream) {
  if (p.S * p.H == 0) return;
  const dim3 grid(unsigned(p.S * p.H), unsigned((p.V + kColumns - 1) / kColumns));
  const auto at = static_cast<cudaStream_t>(stream);
  if (p.K <= 64)
    few_steps<2><<<grid, kThreads, 0, at>>>(p);
  else if (p.K <= 128)
    few_steps<4><<<grid, kThreads, 0, at>>>(p);
  else
    few_steps<8><<<grid, kThreads, 0, at>>>(p);
  check_launch("delta_product");
}

}  // namespace lrnn::kernels::cuda
