#include "ops/gated_linear_attention/gated_linear_attention.h"

#include "ops/declare.h"
#include "ops/torch.h"

// Its kernels are those of the diagonal recurrence: ops/diagonal/.
namespace lrnn::ops {

GatedLinearAttentionResult gated_linear_attention(const GatedLinearAttention& in) {
  return apply_op(in, gated_linear_attention_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<GatedLinearAttention, gated_linear_attention>(m); }

}  // namespace lrnn::ops
