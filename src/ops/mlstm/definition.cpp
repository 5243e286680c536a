#include <cmath>
#include <limits>

#include "ops/mlstm/mlstm.h"
#include "ops/torch.h"

// The definition. Plain torch, any dtype, any device, differentiated by torch itself. Every kernel
// is tested against this one; nothing here is ever optimised.
namespace lrnn::ops {
namespace {

using torch::Tensor;

MlstmResult dense_mlstm(const Mlstm& in) {
  const int64_t B = in.q.size(0), T = in.q.size(1), H = in.q.size(2), K = in.q.size(3),
                V = in.v.size(3);
  const auto wide = at::promoteTypes(in.q.scalar_type(), torch::kFloat32);
  const auto options = in.q.options().dtype(wide);
  const double scale = in.scale.value_or(1 / std::sqrt(double(K)));
  const bool given = in.state.C.defined();
  Tensor C = given ? in.state.C.to(wide) : torch::zeros({B, H, K, V}, options),
         n = given ? in.state.n.to(wide) : torch::zeros({B, H, K}, options),
         m = given ? in.state.m.to(wide)
                   : torch::full({B, H}, -std::numeric_limits<double>::infinity(), options);
  std::vector<Tensor> outputs;
  for (int64_t t = 0; t < T; ++t) {
    const Tensor q = in.q.select(1, t).to(wide), k = scale * in.k.select(1, t).to(wide),
                 v = in.v.select(1, t).to(wide), i = in.i.select(1, t).to(wide),
                 a = torch::log_sigmoid(in.f.select(1, t).to(wide)) + m;
    m = torch::where(i >= a, i, a);
    const Tensor forget = (a - m).exp().unsqueeze(-1), input = (i - m).exp().unsqueeze(-1);
    C = forget.unsqueeze(-1) * C + (input * k).unsqueeze(-1) * v.unsqueeze(-2);
    n = forget * n + input * k;
    const Tensor size = torch::maximum((n * q).sum(-1).abs(), (-m).exp()) + in.eps;
    const Tensor read = q.unsqueeze(-2).matmul(C).squeeze(-2);
    outputs.push_back((read / size.unsqueeze(-1)).to(in.q.scalar_type()));
  }
  return {T > 0 ? torch::stack(outputs, 1) : torch::zeros({B, 0, H, V}, in.q.options()), {C, n, m}};
}

}  // namespace

MlstmResult mlstm_definition(const Mlstm& in) {
  if (!in.cu_seqlens.defined()) return dense_mlstm(in);
  // Packed: the same thing, one sequence after the other.
  std::vector<Tensor> h, C, n, m;
  for (int64_t s = 0; s + 1 < in.cu_seqlens.size(0); ++s) {
    const int64_t begin = in.cu_seqlens[s].item<int64_t>(),
                  end = in.cu_seqlens[s + 1].item<int64_t>();
    Mlstm one = in;
    for (Tensor* x : {&one.q, &one.k, &one.v, &one.i, &one.f}) *x = x->slice(1, begin, end);
    for (Tensor* x : {&one.state.C, &one.state.n, &one.state.m})
      if (x->defined()) *x = x->slice(0, s, s + 1);
    const auto out = dense_mlstm(one);
    h.push_back(out.h), C.push_back(out.state.C);
    n.push_back(out.state.n), m.push_back(out.state.m);
  }
  return {torch::cat(h, 1), {torch::cat(C, 0), torch::cat(n, 0), torch::cat(m, 0)}};
}

}  // namespace lrnn::ops
