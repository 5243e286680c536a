#include "ops/gated_linear_attention/gated_linear_attention.h"

#include "ops/by_sequence.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

// Its kernels are those of the diagonal recurrence: ops/diagonal/.
namespace lrnn::ops {

GatedLinearAttentionResult gated_linear_attention(const GatedLinearAttention& in) {
  if (in.read_at.defined())
    return read_recurrence(in, &GatedLinearAttention::q, scale_of(in.scale, in.k),
                           gated_linear_attention);
  return apply_op(in, gated_linear_attention_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<GatedLinearAttention, gated_linear_attention>(m); }

}  // namespace lrnn::ops
