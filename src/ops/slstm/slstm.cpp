#include "ops/slstm/slstm.h"

#include "ops/declare.h"
#include "ops/torch.h"

namespace lrnn::ops {

SlstmResult slstm(const Slstm& in) { return apply_op(in, slstm_definition); }

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<Slstm, slstm>(m); }

}  // namespace lrnn::ops
