#pragma once
#include "kernels/cpu/units.h"
#include "kernels/selective_scan.h"

// Between the dispatcher and the files built per instruction set.
namespace lrnn::kernels {

struct SelectiveScanUnits {
  void (*forward[3])(const SelectiveScanForward&, const Unit&);    // by Type
  void (*backward[3])(const SelectiveScanBackward&, const Unit&);  // by Type
};
extern const SelectiveScanUnits kSelectiveScanBaseline;
extern const SelectiveScanUnits kSelectiveScanAvx2;
extern const SelectiveScanUnits kSelectiveScanAvx512;

// A unit is a group of this many bytes of wide channels, a whole number of vectors for every
// instruction set: sums over the channels of a group cross lanes once.
inline constexpr int64_t kScanGroupBytes = 256;

}  // namespace lrnn::kernels
