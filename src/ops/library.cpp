#include "ops/declare.h"
#include "ops/torch.h"

// The ops as torch sees them: namespace lrnn. Each op's own folder adds its own.
namespace lrnn::ops {

TORCH_LIBRARY(lrnn, m) {
  refuse_derivatives(m, {"add_norm", "add_norm_backward", "block_gradient", "block_product",
                         "few_linear", "few_linear_backward", "gated_mlp", "gated_mlp_backward",
                         "give_rows", "take_rows", "unit_conv_backward", "unit_conv_forward"});
}

}  // namespace lrnn::ops
