#include "ops/rwkv7/rwkv7.h"

#include "ops/declare.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

// Its kernels are those of the diagonal recurrence: ops/diagonal/.
namespace lrnn::ops {

Rwkv7Result rwkv7(const Rwkv7& in) {
  if (in.read_at.defined()) return read_recurrence(in, &Rwkv7::r, in.scale, rwkv7);
  return apply_op(in, rwkv7_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<Rwkv7, rwkv7>(m); }

}  // namespace lrnn::ops
