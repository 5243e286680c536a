#pragma once
#include "kernels/cuda/tile/common.cuh"

// Where the states kept every `chunk` tokens lie. Those of all sequences are numbered through;
// packed sequences leave a few numbers unused, so that nobody has to read cu_seqlens on the host.
namespace lrnn::kernels::cuda {

template <class Inputs> int64_t kept_states(const Inputs& p, int64_t chunk) {
  if (p.cu_seqlens) return p.T / chunk + p.S;
  return p.S * ((p.T + chunk - 1) / chunk);
}

template <class Inputs>
__device__ __forceinline__ int64_t first_kept(const Inputs& p, int64_t s, int64_t chunk) {
  if (!p.cu_seqlens) return s * ((p.T + chunk - 1) / chunk);
  return min(max(p.cu_seqlens[s], int64_t(0)), p.T) / chunk + s;
}

}  // namespace lrnn::kernels::cuda
