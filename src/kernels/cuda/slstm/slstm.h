#pragma once
#include <cstdint>

#include "kernels/slstm.h"

// The sLSTM cell on the GPU, free of torch: device pointers in, launches on a stream. The structs
// are the CPU's; what differs is said here. ops/slstm/slstm.h says what it computes.
//
// One launch goes through the whole sequence, with the recurrent matrix of a head in shared memory
// (what does not fit is read through the caches). Backward follows only the gradient of the state
// in such a launch; the gates of all steps before it, and dR after it, are plain matrix products of
// what slstm_previous and slstm_backward leave.
namespace lrnn::kernels::cuda {

// steps: wide [B,H,T,4,D], the state after each step, or null.
void slstm_forward(const SlstmForward& p, void* stream);

// The output before each step: wide [H,B*T,D].
void slstm_previous(const SlstmInputs& p, const void* steps, void* previous, void* stream);

// `gates` is wide [H,B*T,4,D]: i, f, z, o as R makes them on entry, their gradients on return.
// `transposed` is R as [H,4,D,D], from gate and unit to unit. dwx, dR and dbias are not written.
void slstm_backward(const SlstmBackward& p, const void* transposed, void* gates, void* stream);

}  // namespace lrnn::kernels::cuda
