#pragma once
#include <cstdint>

// down(silu(gate(x)) * up(x)) in one pass over the rows of x, for bfloat16 on Hopper: the hidden
// units stay on the chip. Backward makes them again.
namespace lrnn::kernels::cuda {

struct GatedMlp {
  int64_t rows = 0, D = 0, hidden = 0;
  const uint16_t* x = nullptr;  // [rows,D], rows `stride` elements apart
  int64_t stride = 0;
  const uint16_t *gate = nullptr, *up = nullptr, *down = nullptr;  // [hidden,D] twice, [D,hidden]
};

struct GatedMlpGradient {
  const uint16_t* dy = nullptr;  // [rows,D], rows `stride` elements apart
  int64_t stride = 0;
  uint16_t* dx = nullptr;  // [rows,D]
  // What the gradients of the weights are products of: [rows,hidden] of the hidden units, and the
  // gradients of gate(x) and up(x) side by side, [rows,2 hidden].
  uint16_t *h = nullptr, *dboth = nullptr;
};

// Whether this chip has the kernels, and the sizes fit them. Rows of everything lie on 16 bytes.
bool gated_mlp_fits(int64_t D, int64_t hidden);
void gated_mlp_forward(const GatedMlp& p, uint16_t* y, void* stream);  // y [rows,D]
void gated_mlp_backward(const GatedMlp& p, const GatedMlpGradient& g, void* stream);

// The kernels themselves.
void hopper_mlp_forward(const GatedMlp& p, uint16_t* y, void* stream);
void hopper_mlp_backward(const GatedMlp& p, const GatedMlpGradient& g, void* stream);

}  // namespace lrnn::kernels::cuda
