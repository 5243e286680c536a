#pragma once
#include "ops/mlstm/inner.h"

// The mLSTM cell in chunks on tensor cores, for the sizes that fit.
namespace lrnn::ops::cuda {

bool mlstm_in_chunks(const torch::Tensor& q, const torch::Tensor& v);
MlstmForwardFunction mlstm_chunk_forward;
MlstmBackwardFunction mlstm_chunk_backward;

}  // namespace lrnn::ops::cuda
