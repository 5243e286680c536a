#include "ops/by_sequence.h"
#include "ops/selective_scan/selective_scan.h"
#include "ops/torch.h"

// The definition. Plain torch, any dtype, any device, differentiated by torch itself. Every kernel
// is tested against this one; nothing here is ever optimised.
namespace lrnn::ops {
namespace {

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

}  // namespace lrnn::ops
