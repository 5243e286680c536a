#pragma once
#include "kernels/dispatch.h"
#include "kernels/types.h"

// The selective scan of Mamba on the CPU, forward and backward, free of torch.
// ops/selective_scan/selective_scan.h says what it computes.
//
// Channels are independent and lie side by side in memory, so a vector holds one state of several
// channels and nothing is summed across lanes on the way forward. Backward goes through chunks of
// tokens from the last to the first, computes the states of a chunk again from the one that was
// kept at its beginning, and leaves the sums over channels (dB, dC) and over sequences (dA, dD,
// dbias) as partial results, to be added in a fixed order.
namespace lrnn::kernels {

// "wide" is double for kFloat64 and float otherwise; wide arrays are contiguous.
struct SelectiveScanInputs {
  Type type = Type::kFloat32;  // of the rows and their gradients
  int64_t batch = 0, T = 0, D = 0, N = 0;
  int64_t S = 0;                        // sequences: batch, or what cu_seqlens says
  const int64_t* cu_seqlens = nullptr;  // [S+1], batch = 1
  bool softplus = true, negative = false;
  Rows u, delta;                     // [batch,T,D]
  Rows B, C;                         // [batch,T,N]; C.data null: no outputs
  Rows z;                            // [batch,T,D], or null
  const void* A = nullptr;           // wide [D,N]
  const void* skip = nullptr;        // wide [D], or null: what ops/ calls D
  const void* delta_bias = nullptr;  // wide [D], or null
  const void* state = nullptr;       // wide [S,D,N], or null for zeros
};

struct SelectiveScanForward : SelectiveScanInputs {
  Rows y;
  void* final_state = nullptr;  // wide [S,D,N]
  void* states = nullptr;       // wide [batch, T / chunk, N, D], or null: what backward reads
};

struct SelectiveScanBackward : SelectiveScanInputs {
  Rows dy;                              // null: none
  const void* d_final_state = nullptr;  // wide [S,D,N], or null for zeros
  const void* states = nullptr;
  Rows du, ddelta, dz;                      // dz is written where z is and dy comes
  void *dB = nullptr, *dC = nullptr;        // wide [groups,batch,T,N]; dC null without outputs
  void* dA = nullptr;                       // wide [S,D,N]
  void *dskip = nullptr, *dbias = nullptr;  // wide [S,D]
  void* dstate = nullptr;                   // wide [S,D,N], or null where nobody asks
};

// Tokens between two kept states. A sequence's own first state is not kept: it is `state`.
inline constexpr int64_t kSelectiveScanChunk = 32;
// The groups of channels, each of which leaves partial sums: so many bytes of wide channels, a
// whole number of vectors for every instruction set, that sums over a group cross lanes once.
inline constexpr int64_t kScanGroupBytes = 256;
inline int64_t selective_scan_groups(int64_t D, Type type) {
  const int64_t channels = kScanGroupBytes / (type == Type::kFloat64 ? 8 : 4);
  return (D + channels - 1) / channels;
}

LRNN_KERNEL(selective_scan_forward, SelectiveScanForward)
LRNN_KERNEL(selective_scan_backward, SelectiveScanBackward)

}  // namespace lrnn::kernels
