#include "ops/slstm/slstm.h"

#include "ops/declare.h"
#include "ops/read_at/read_at.h"
#include "ops/torch.h"

namespace lrnn::ops {

SlstmResult slstm(const Slstm& in) {
  if (!in.read_at.defined()) return apply_op(in, slstm_definition);
  Slstm all = in;
  all.read_at.reset();
  auto out = slstm(all);
  // The output at the end is part of the state.
  out.h = are_ends(in.read_at, in.cu_seqlens, in.wx.size(0), in.wx.size(1))
              ? out.state.select(1, 0).to(in.wx.scalar_type()).unsqueeze(0)
              : at_rows(out.h, in.read_at);
  return out;
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<Slstm, slstm>(m); }

}  // namespace lrnn::ops
