#include "ops/mlstm/mlstm.h"

#include "ops/declare.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

namespace lrnn::ops {

void Mlstm::check() const {
  lrnn::check(state.C.defined() == state.n.defined() && state.C.defined() == state.m.defined(),
              "[mlstm] a state is C, n and m together");
}

MlstmResult mlstm(const Mlstm& in) {
  auto out = apply_op(in, mlstm_definition);
  if (in.read_at.defined()) out.h = at_rows(out.h, in.read_at);
  return out;
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<Mlstm, mlstm>(m); }

}  // namespace lrnn::ops
