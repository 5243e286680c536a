#pragma once
#include "kernels/ttt.h"

// TTT-Linear of kernels/ttt.h on the GPU, free of torch: device pointers in, launches on a stream.
// The structs are the CPU's.
namespace lrnn::kernels::cuda {

// Whether a block has room for a head and a mini-batch.
bool ttt_fits(const TttInputs& p);

void ttt_forward(const TttForward& p, void* stream);
void ttt_backward(const TttBackward& p, void* stream);

}  // namespace lrnn::kernels::cuda
