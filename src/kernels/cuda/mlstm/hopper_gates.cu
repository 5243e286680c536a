#include "kernels/cuda/mlstm/hopper.cuh"
#include "kernels/cuda/tile/functions.cuh"

// What runs along a sequence a number at a time: m and the sums of log forget gates, and the
// gradients of the gates. A block has a sequence and head, a thread one token of 1024 at a time.
namespace lrnn::kernels::cuda {
namespace {

constexpr int kThreads = 1024, kWarps = kThreads / 32, kChunks = kThreads / kHopperRows;

__device__ __forceinline__ void two_floats(double x, float& high, float& low) {
  high = float(x);
  low = isinf(high) ? 0.f : float(x - double(high));
}

// Over the lanes up to this one: m after them is max(m before + sum, most).
__device__ __forceinline__ void scan(double& sum, double& most) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const double s = __shfl_up_sync(0xffffffffu, sum, d), l = __shfl_up_sync(0xffffffffu, most, d);
    if (lane >= d) most = fmax(l + sum, most), sum += s;
  }
}

// m_t is the largest of i_s + F_t - F_s.
__global__ void __launch_bounds__(kThreads) gates(const MlstmForward p, float* records) {
  __shared__ double sums[kWarps], most[kWarps], ends[kChunks];
  __shared__ float ms[kThreads + 1];
  pdl_trigger();
  const int64_t s = blockIdx.x / p.H, h = blockIdx.x - s * p.H;
  const Span span = span_of(p, s);
  const int64_t slot = first_kept(p, s, kHopperRows);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float m = p.m ? static_cast<const float*>(p.m)[blockIdx.x] : -INFINITY;
  for (int64_t begin = 0; begin < span.length; begin += kThreads) {
    const int64_t t = begin + threadIdx.x, token = (span.b * p.T + span.t0 + t) * p.H + h;
    double F = 0, largest = -INFINITY;
    float i = -INFINITY;
    if (t < span.length) {
      i = static_cast<const float*>(p.i)[token], largest = i;
      // A factor of exp(-1e8) is zero, and unlike one of exp(-inf) it can be taken back.
      F = fmaxf(log_sigmoid(static_cast<const float*>(p.f)[token]), -1e8f);
    }
    scan(F, largest);
    if (lane == 31) sums[warp] = F, most[warp] = largest;
    if (threadIdx.x == 0) ms[0] = m;
    __syncthreads();
    double sum = sums[lane], before = most[lane];
    scan(sum, before);
    before = fmax(double(m) + sum, before);  // m after each warp
    before = __shfl_sync(0xffffffffu, before, warp - 1);
    if (warp == 0) before = m;
    const float mine = float(fmax(before + F, largest));
    ms[threadIdx.x + 1] = mine;
    if (warp % 2) F += sums[warp - 1];
    const double read = kLog2e<double> * (F - mine), from = kLog2e<double> * (F - i);
    if (threadIdx.x % 64 == 63) ends[warp / 2] = read;
    __syncthreads();
    if (t / 64 * 64 < span.length) {
      float* const to = records + ((slot + t / 64) * p.H + h) * kRecords * 64 + t % 64;
      const float m_before = ms[threadIdx.x / 64 * 64];
      two_floats(read, to[kSumHigh * 64], to[kSumLow * 64]);
      two_floats(from, to[kFromHigh * 64], to[kFromLow * 64]);
      to[kM * 64] = mine;
      to[kRead * 64] = exp2_of(float(kLog2e<double> * (F + m_before - mine)));
      to[kWrite * 64] = exp2_of(float(ends[warp / 2] - from)) * float(p.scale);
    }
    m = ms[kThreads];
    __syncthreads();
  }
  if (threadIdx.x == 0) static_cast<float*>(p.final_m)[blockIdx.x] = m;
}

// <dC, C> and <dn, n> at the end.
__device__ __forceinline__ double at_the_end(const MlstmBackward& p, double (&partial)[kWarps]) {
  double sum = 0;
  const auto add = [&](const void* x, const void* y, int64_t n) {
    if (!x) return;
    const float *const a = static_cast<const float*>(x) + blockIdx.x * n,
                       *const b = static_cast<const float*>(y) + blockIdx.x * n;
    for (int64_t i = threadIdx.x; i < n; i += kThreads) sum += double(a[i] * b[i]);
  };
  add(p.dfinal_C, p.final_C, p.K * p.V), add(p.dfinal_n, p.final_n, p.K);
  sum = sum_lanes<32>(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += partial[w];
  __syncthreads();
  return sum;
}

// What the other kernels left of a token's gates.
struct Token {
  double flow = 0;   // of the weights it reads with, less those its chunk reads it with
  double after = 0;  // of the weight with which the state after the chunk has it
  double input = 0;  // of log_input
  double own = 0;    // of m, before what comes from later tokens
  float f = 0;
  bool took = true;  // whether m is i
};
// Row t of a chunk, `at` in what is [B,T,H].
struct TokenPlace {
  int64_t chunk;
  int t;
  int64_t at;
};
__device__ __forceinline__ Token token_at(const MlstmBackward& p, const HopperKept& kept,
                                          const HopperWork& work, const TokenPlace& place,
                                          float m_before) {
  const auto [chunk, t, at] = place;
  Token out;
  const float* const slopes = work.slopes + chunk * kSlopes * 64 + t;
  double before = 0;
  for (int64_t k = 0; k < (p.K + 63) / 64; ++k) {
    before += double(work.before[(k * kept.chunks + chunk) * 64 + t]);
    out.after += double(work.after[(k * kept.chunks + chunk) * 64 + t]);
  }
  const double columns = slopes[kColumnSums * 64];
  out.flow = double(slopes[kRowSums * 64]) - columns + before;
  out.input = columns + out.after, out.own = slopes[kMSlope * 64];
  out.f = static_cast<const float*>(p.f)[at];
  out.took = static_cast<const float*>(p.i)[at] >= log_sigmoid(out.f) + m_before;
  return out;
}

// Sums over the lanes up to this one.
__device__ __forceinline__ double running_sum(double x) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const double other = __shfl_up_sync(0xffffffffu, x, d);
    if (lane >= d) x += other;
  }
  return x;
}

struct ForgetSums {
  double flow[kWarps], after[kWarps];
  bool closed[kChunks];  // nothing passes through the chunk
};
// The gradient of a log forget gate: that of the weights of all readers from here on for what was
// written before. Within the chunk these are the flows from here on. From outside come those of
// the state after the chunk for tokens before this one, and `passing`, that of the state after it
// for the state before it: less than that of all it has (`beyond`) by what the chunk's tokens have.
// Threads have later tokens first.
__device__ __forceinline__ double forget_gradient(const Token& token, ForgetSums& sums,
                                                  double& beyond) {
  const int warp = threadIdx.x / 32, mine = warp / 2;
  double flow = running_sum(token.flow), after = running_sum(token.after);
  if (threadIdx.x % 32 == 31) sums.flow[warp] = flow, sums.after[warp] = after;
  __syncthreads();
  if (warp % 2) flow += sums.flow[warp - 1], after += sums.after[warp - 1];
  double out = 0;
  for (int n = 0; n < kChunks; ++n) {
    const double all = sums.after[2 * n] + sums.after[2 * n + 1];
    const double passing = sums.closed[n] ? 0.0 : beyond - all;
    if (n == mine) out = flow + (all - after) + passing;
    beyond = passing + (sums.flow[2 * n] + sums.flow[2 * n + 1]);
  }
  __syncthreads();
  return out;
}

// A thread makes of x value + (pass ? x : 0). What it is given by those before it, and `x`: what
// the last makes.
struct ChainSums {
  double value[kWarps];
  int pass[kWarps];
};
__device__ __forceinline__ double block_chain(double value, bool pass_, ChainSums& sums,
                                              double& x) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int pass = pass_;
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    const double v1 = __shfl_up_sync(0xffffffffu, value, d);
    const int p1 = __shfl_up_sync(0xffffffffu, pass, d);
    if (lane >= d) value += pass ? v1 : 0.0, pass &= p1;
  }
  if (lane == 31) sums.value[warp] = value, sums.pass[warp] = pass;
  double given = __shfl_up_sync(0xffffffffu, value, 1);
  int given_pass = __shfl_up_sync(0xffffffffu, pass, 1);
  if (lane == 0) given = 0, given_pass = 1;
  __syncthreads();
  double mine = x;
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) mine = given + (given_pass ? x : 0.0);
    x = sums.value[w] + (sums.pass[w] ? x : 0.0);
  }
  __syncthreads();
  return mine;
}

// From the end. With m the state changes, and h only by eps: the gradient of m is what its token
// has itself and, where the next token's m came from it, that of the next.
__global__ void __launch_bounds__(kThreads)
    gate_gradients(const MlstmBackward p, const HopperKept kept, const HopperWork work) {
  __shared__ double partial[kWarps];
  __shared__ ForgetSums forgets;
  __shared__ ChainSums chain;
  const int64_t s = blockIdx.x / p.H, h = blockIdx.x - s * p.H;
  const Span span = span_of(p, s);
  const int64_t slot = first_kept(p, s, kHopperRows), chunks = (span.length + 63) / 64;
  const auto number_of = [&](int64_t chunk) { return (slot + chunk) * p.H + h; };
  const float m_first = p.m ? static_cast<const float*>(p.m)[blockIdx.x] : -INFINITY;
  double beyond = at_the_end(p, partial);
  const double dm = p.dfinal_m ? double(static_cast<const float*>(p.dfinal_m)[blockIdx.x]) : 0.0;
  double into = dm - beyond;
  pdl_wait();
  for (int64_t last = chunks - 1; last >= 0; last -= kChunks) {
    const int64_t chunk = last - threadIdx.x / 64;
    const int row = 63 - int(threadIdx.x % 64);
    const int64_t t = chunk * 64 + row, at = (span.b * p.T + span.t0 + t) * p.H + h;
    const bool inside = chunk >= 0 && t < span.length;
    Token token;
    if (inside)
      token = token_at(
          p, kept, work, {number_of(chunk), row, at},
          t > 0 ? kept.records[(number_of((t - 1) / 64) * kRecords + kM) * 64 + (t - 1) % 64]
                : m_first);
    if (row == 63)
      forgets.closed[threadIdx.x / 64] =
          chunk >= 0 && kept.records[(number_of(chunk) * kRecords + kRead) * 64 + 63] < 1e-12f;
    const double forget = forget_gradient(token, forgets, beyond);
    const double mine =
        token.own + block_chain(token.took ? 0.0 : token.own, !inside || !token.took, chain, into);
    if (!inside) continue;
    static_cast<float*>(p.di)[at] = float(token.input + (token.took ? mine : 0.0));
    static_cast<float*>(p.df)[at] =
        float((forget + (token.took ? 0.0 : mine)) * double(sigmoid(-token.f)));
  }
  if (threadIdx.x == 0 && p.dm) static_cast<float*>(p.dm)[blockIdx.x] = float(into + beyond);
}

unsigned heads_of(const MlstmInputs& p) { return unsigned(p.S * p.H); }

}  // namespace

void hopper_gates(const MlstmForward& p, const HopperKept& kept, void* stream) {
  // After everything that was launched before.
  gates<<<heads_of(p), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(p, kept.records);
  check_launch("mlstm");
}

void hopper_gate_gradients(const MlstmBackward& p, const HopperKept& kept, const HopperWork& work,
                           void* stream) {
  hopper_launch(gate_gradients, dim3(heads_of(p)), kThreads, 0, stream, p, kept, work);
}

}  // namespace lrnn::kernels::cuda
