#include "kernels/cuda/tile/common.cuh"
#include "kernels/cuda/train/gated_mlp.h"

// Which chips have the fused gated MLP: Hopper's warp-group products (hopper_mlp.cu), or none.
namespace lrnn::kernels::cuda {

#ifdef LRNN_HOPPER
bool gated_mlp_fits(int64_t D, int64_t hidden) {
  return chip().hopper && (D == 64 || D == 128) && hidden > 0 && hidden % 64 == 0;
}
void gated_mlp_forward(const GatedMlp& p, uint16_t* y, void* stream) {
  if (p.rows > 0) hopper_mlp_forward(p, y, stream);
}
void gated_mlp_backward(const GatedMlp& p, const GatedMlpGradient& g, void* stream) {
  if (p.rows > 0) hopper_mlp_backward(p, g, stream);
}
#else
bool gated_mlp_fits(int64_t, int64_t) { return false; }
void gated_mlp_forward(const GatedMlp&, uint16_t*, void*) {}
void gated_mlp_backward(const GatedMlp&, const GatedMlpGradient&, void*) {}
#endif

}  // namespace lrnn::kernels::cuda
