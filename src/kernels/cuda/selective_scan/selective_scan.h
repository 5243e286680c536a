#pragma once
#include <cstdint>

#include "kernels/selective_scan.h"

// The selective scan on the GPU, free of torch: device pointers in, launches on a stream. The
// structs are the CPU's; what differs is said here. ops/selective_scan/selective_scan.h says what
// it computes.
namespace lrnn::kernels::cuda {

inline constexpr int64_t kMostScanStates = 128;  // per channel

// `states` is wide [scan_kept, D, scan_padded(N)]: the states before every chunk of 16 tokens.
int64_t scan_kept(const SelectiveScanInputs& p);
int64_t scan_padded(int64_t N);
// dB and dC are wide [scan_groups, batch, T, N], to be added up.
int64_t scan_groups(const SelectiveScanInputs& p);

void scan_forward(const SelectiveScanForward& p, void* stream);
void scan_backward(const SelectiveScanBackward& p, void* stream);

}  // namespace lrnn::kernels::cuda
