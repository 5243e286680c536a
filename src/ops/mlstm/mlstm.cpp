#include "ops/mlstm/mlstm.h"

#include "ops/declare.h"
#include "ops/torch.h"

namespace lrnn::ops {

void Mlstm::check() const {
  lrnn::check(state.C.defined() == state.n.defined() && state.C.defined() == state.m.defined(),
              "[mlstm] a state is C, n and m together");
}

MlstmResult mlstm(const Mlstm& in) { return apply_op(in, mlstm_definition); }

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<Mlstm, mlstm>(m); }

}  // namespace lrnn::ops
