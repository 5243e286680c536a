#include "ops/selective_scan/selective_scan.h"

#include "ops/by_sequence.h"
#include "ops/linears/linears.h"
#include "ops/read_at/read_at.h"
#include "ops/swiglu/swiglu.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

// The definition. Plain torch, any dtype, any device, differentiated by torch itself. Every kernel
// is tested against this one; nothing in it is ever optimised.
SelectiveScanResult scan_dense(const SelectiveScan& in) {
  const int64_t batch = in.u.size(0), T = in.u.size(1), D = in.u.size(2), N = in.A.size(1);
  const auto wide = at::promoteTypes(in.u.scalar_type(), torch::kFloat32);
  const auto at = [&](const Tensor& x, int64_t t) { return x.select(1, t).to(wide); };
  const Tensor A = in.A.to(wide);
  Tensor h = in.state.defined() ? in.state.to(wide)
                                : torch::zeros({batch, D, N}, in.u.options().dtype(wide));
  std::vector<Tensor> ys;
  for (int64_t t = 0; t < T; ++t) {
    const Tensor u = at(in.u, t);
    Tensor dt = at(in.delta, t);
    if (in.delta_bias.defined()) dt = dt + in.delta_bias.to(wide);
    if (in.softplus) dt = torch::softplus(dt);
    Tensor a = (dt.unsqueeze(-1) * A).exp();
    if (in.negative) a = 2 * a - 1;
    h = a * h + (dt * u).unsqueeze(-1) * at(in.B, t).unsqueeze(1);
    if (!in.C.defined()) continue;
    Tensor y = (h * at(in.C, t).unsqueeze(1)).sum(-1);
    if (in.D.defined()) y = y + in.D.to(wide) * u;
    if (in.z.defined()) y = y * torch::silu(at(in.z, t));
    ys.push_back(y.to(in.u.scalar_type()));
  }
  if (!in.C.defined()) return {{}, h};
  return {T > 0 ? torch::stack(ys, 1) : torch::zeros({batch, 0, D}, in.u.options()), h};
}

}  // namespace

SelectiveScanResult selective_scan_definition(const SelectiveScan& in) {
  return by_sequence(in, scan_dense);
}

namespace {

// At the ends of sequences the state alone runs, and is read once.
SelectiveScanResult scan_at_rows(const SelectiveScan& in) {
  SelectiveScan all = in;
  const Tensor rows = std::exchange(all.read_at, {});
  all.u_at.reset();
  const int64_t B = in.u.size(0), T = in.u.size(1);
  if (are_ends(rows, in.cu_seqlens, B, T)) {
    all.C.reset(), all.D.reset(), all.z.reset();
    auto out = selective_scan(all);
    const auto wide = out.state.scalar_type();
    Tensor y = wide_matmul(out.state, in.C.squeeze(0).to(wide).unsqueeze(-1)).squeeze(-1);
    if (in.D.defined()) y = y + in.D * in.u_at.squeeze(0);
    y = y.to(in.u.scalar_type());
    out.y = (in.z.defined() ? swiglu(in.z.squeeze(0), y) : y).unsqueeze(0);
    return out;
  }
  all.C = spread(in.C, rows, B, T);
  if (in.z.defined()) all.z = spread(in.z, rows, B, T);
  auto out = selective_scan(all);
  out.y = at_rows(out.y, rows);
  return out;
}

}  // namespace

void SelectiveScan::check() const {
  lrnn::check(C.defined() || !(D.defined() || z.defined()),
              "[selective_scan] D and z shape the output, which needs C");
}

SelectiveScanResult selective_scan(const SelectiveScan& in) {
  if (in.read_at.defined()) return scan_at_rows(in);
  return apply_op(in, selective_scan_definition);
}

TORCH_LIBRARY_FRAGMENT(lrnn, m) { declare<SelectiveScan, selective_scan>(m); }

}  // namespace lrnn::ops
