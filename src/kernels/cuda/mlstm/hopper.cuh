#pragma once
#include "kernels/cuda/mlstm/mlstm.h"
#include "kernels/cuda/tile/async.cuh"
#include "kernels/cuda/tile/sequences.cuh"
#include "kernels/cuda/tile/tensor_map.cuh"

// mLSTM heads of any size on Hopper: chunks of 64 tokens, and between kernels what lies here.
//
//   gates    m and the sums of log forget gates of every token
//   pairs    w q k^T of every chunk, all chunks at once, and what a chunk adds to n
//   walk     C and n through the chunks in order; what tokens read
//
// Backward walks three times more: for dq (C^T again), dk and dv (the gradient of C, from the end).
// Nobody keeps C: a walk has it in registers.
namespace lrnn::kernels::cuda {

constexpr int kHopperRows = 64;      // tokens of a chunk
constexpr int kPairs = 2 * 64 * 64;  // bfloat16 of a matrix of pairs, in two parts
constexpr int kPairBytes = 2 * kPairs;

// 64 floats each for a chunk of a head, from its gates. With F the sum of log forget gates from the
// chunk's beginning, token t reads token s with the weight exp(F_t - m_t - (F_s - i_s)). The two
// sums are differences of large numbers, so each is two floats, as logarithms to the base 2.
enum MlstmRecord : uint8_t {
  kSumHigh,  // F - m
  kSumLow,
  kFromHigh,  // F - i
  kFromLow,
  kM,
  kRead,   // of the state before the chunk in what is read; the last is the chunk's decay
  kWrite,  // scale times that of a token in the state after it
  kAlong,  // n . q within the chunk
  kRecords
};
// The same for backward. r is the inverse of what h is divided by; dh with r x beside it, where v
// has a one, is the gradient of what was read.
enum MlstmSlope : uint8_t {
  kReadSlope,  // kRead r
  kOneSlope,   // x
  kMSlope,     // of m, all that flows through its token
  kRowSums,    // of the gradients of the logarithms of the weights
  kColumnSums,
  kSlopes
};

// A chunk of one head is number slot * H + h.
struct HopperChunk {
  int64_t s, first;  // the sequence, and the chunk's first token there
  Span span;
  int count;  // 0: nobody's chunk
};
__device__ inline HopperChunk hopper_chunk(const MlstmInputs& p, int64_t slot) {
  int64_t s = 0, end = p.S;
  while (end - s > 1) {  // the last sequence whose first slot is not beyond this one
    const int64_t middle = (s + end) / 2;
    (first_kept(p, middle, kHopperRows) <= slot ? s : end) = middle;
  }
  HopperChunk out{s, (slot - first_kept(p, s, kHopperRows)) * kHopperRows, span_of(p, s), 0};
  const int64_t left = out.span.length - out.first;
  out.count = left <= 0 ? 0 : int(min(left, int64_t(kHopperRows)));
  return out;
}

// What forward leaves for backward.
struct HopperKept {
  float *records, *n, *along, *read;
  int64_t chunks, total;
  HopperKept(const MlstmInputs& p, float* base, bool with_read) {
    chunks = kept_states(p, kHopperRows) * p.H;
    records = base, along = records + chunks * kRecords * 64, n = along + chunks * 64;
    read = n + chunks * p.K, total = read - base + (with_read ? p.B * p.T * p.H * p.V : 0);
  }
};

// What backward's kernels leave for each other.
struct HopperWork {
  float *slopes, *adds, *before, *after;  // adds: to the gradient of n
  uint16_t *reads, *slope_pairs;          // w S r and its like w dS, for dv and for dq and dk
  int64_t total;
  HopperWork(const MlstmInputs& p, float* base) {
    const int64_t chunks = kept_states(p, kHopperRows) * p.H, tiles = (p.K + 63) / 64;
    reads = reinterpret_cast<uint16_t*>(base), slope_pairs = reads + chunks * kPairs;
    slopes = base + chunks * kPairs, before = slopes + chunks * kSlopes * 64;
    after = before + tiles * chunks * 64, adds = after + tiles * chunks * 64;
    total = adds + chunks * p.K - base;
  }
};

// The rows of the caller, for the copy engine: boxes of 64 tokens and 64 columns.
struct HopperMaps {
  CUtensorMap q, k, v, dh;
};

// A kernel starts while the last blocks of the one before run (async.cuh).
template <class... Parameters, class... Arguments>
void hopper_launch(void (*kernel)(Parameters...), dim3 blocks, int threads, int bytes, void* stream,
                   const Arguments&... arguments) {
  pdl_launch(kernel, blocks, threads, bytes, static_cast<cudaStream_t>(stream), arguments...);
}

// The kernels, by file.
void hopper_gates(const MlstmForward& p, const HopperKept& kept, void* stream);
void hopper_gate_gradients(const MlstmBackward& p, const HopperKept& kept, const HopperWork& work,
                           void* stream);
void hopper_pairs(const MlstmForward& p, const HopperMaps& maps, const HopperKept& kept,
                  uint16_t* pairs, float* adds, void* stream);
void hopper_pair_gradients(const MlstmBackward& p, const HopperMaps& maps, const HopperKept& kept,
                           const HopperWork& work, void* stream);

// One walk. Reads and keys have `depth` columns, values and out `columns`, the state is
// [depth, columns]:
//
//   out = pairs values + read_by (reads state)      state <- decay state + (write_by keys)^T values
struct HopperWalk : MlstmInputs {
  Rows out;
  int64_t depth = 0, columns = 0;
  int64_t chunks = 0;
  int tiles = 0, ranks = 0;
  const uint16_t* pairs = nullptr;
  const float *records = nullptr, *slopes = nullptr;
  // What chunks add to n or its gradient, or n before them.
  const float *vectors = nullptr, *first_vector = nullptr;
  float *kept_vectors = nullptr, *last_vector = nullptr;
  const float* first = nullptr;
  float* last = nullptr;
  int64_t depth_stride = 0, column_stride = 0;  // of first and last
  float *read = nullptr, *along = nullptr;      // of kept, where wanted
  float* dots = nullptr;  // [tiles,chunks,64]: the products of q or k with what was read
};
enum class HopperRole : uint8_t { kH, kDq, kDk, kDv };
struct HopperWalks {
  HopperWalk dq, dk, dv;
};
void hopper_walk_forward(HopperWalk p, const HopperMaps& maps, void* stream);
void hopper_walk_backward(HopperWalks p, const HopperMaps& maps, void* stream);

}  // namespace lrnn::kernels::cuda
