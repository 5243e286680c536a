#pragma once

// What the kernels want to know of the GPU at hand, asked in one place: so a test or a bench can
// run what a lesser GPU would run on the one that is there.
namespace lrnn::kernels::cuda {

struct Chip {
  int shared = 0;       // bytes of shared memory that a block may have
  int processors = 0;   // multiprocessors (SMs)
  bool hopper = false;  // has warp-group products and the copy engine (wgmma, TMA)
};

Chip chip();  // the current device

}  // namespace lrnn::kernels::cuda

// For tests and benches, which find it by name in liblrnn_cuda.so: choose kernels from now on as on
// a chip of this compute capability (80, 86, 89, 100, 120), with no more shared memory than it has
// and without Hopper's instructions; 0: as on the chip that is there. False where the number is
// none of these.
extern "C" bool lrnn_choose_kernels_as_on(int capability);
