#include <vector>

#include "base/error.h"
#include "ops/delta_product_inner.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

using torch::Tensor;
using Sizes = std::vector<c10::SymInt>;

std::string show(c10::SymIntArrayRef sizes) {
  std::ostringstream out;
  out << '[';
  for (size_t i = 0; i < sizes.size(); ++i) out << (i ? ", " : "") << sizes[i];
  out << ']';
  return out.str();
}

void check_sizes(const char* name, const Tensor& x, const Sizes& want, const char* letters) {
  if (!x.defined()) return;
  if (x.sym_sizes() != c10::SymIntArrayRef(want))
    throw Error(cat("[delta_product] ", name, " must be ", show(want), " = ", letters, ", got ",
                    show(x.sym_sizes())));
}

void check_type(const char* name, const Tensor& x, std::initializer_list<torch::Dtype> allowed,
                const char* why) {
  if (!x.defined()) return;
  for (const auto type : allowed)
    if (x.scalar_type() == type) return;
  throw Error(cat("[delta_product] ", name, " is ", x.scalar_type(), ", but ", why));
}

void check_types(const DeltaProduct& in) {
  check_type("k", in.k, {torch::kFloat32, torch::kFloat64, torch::kBFloat16},
             "q, k and v must be float32, float64 or bfloat16");
  const auto type = in.k.scalar_type(), wide = wide_type(in.k);
  check_type("q", in.q, {type}, "it must have the dtype of k");
  check_type("v", in.v, {type}, "it must have the dtype of k");
  check_type("beta", in.beta, {type, wide},
             "it must have the dtype of k, or float32 beside bfloat16");
  check_type("log_gate", in.log_gate, {type, wide},
             "it must have the dtype of k, or float32 beside bfloat16");
  check_type("state", in.state, {wide}, "it must be float32 (float64 for float64 inputs)");
  check_type("cu_seqlens", in.cu_seqlens, {torch::kInt64}, "it must be int64");
}

}  // namespace

void check_delta_product(const DeltaProduct& in) {
  check(in.k.defined() && in.v.defined() && in.beta.defined(),
        "[delta_product] k, v and beta are needed");
  check(in.k.dim() == 5, "[delta_product] k must have 5 dimensions [B,T,N,H,K], got ",
        show(in.k.sym_sizes()));
  check(in.v.dim() == 5, "[delta_product] v must have 5 dimensions [B,T,N,H,V], got ",
        show(in.v.sym_sizes()));
  const auto k = in.k.sym_sizes();
  const c10::SymInt B = k[0], T = k[1], N = k[2], H = k[3], K = k[4], V = in.v.sym_size(4);
  check_sizes("q", in.q, {B, T, H, K}, "[B,T,H,K]");
  check_sizes("v", in.v, {B, T, N, H, V}, "[B,T,N,H,V]");
  check_sizes("beta", in.beta, {B, T, N, H}, "[B,T,N,H]");
  check_sizes("log_gate", in.log_gate, {B, T, H}, "[B,T,H]");
  check(N >= 1 && K >= 1 && V >= 1, "[delta_product] N, K and V must be at least 1, got k ",
        show(k), " and v ", show(in.v.sym_sizes()));
  if (in.cu_seqlens.defined()) {
    check(in.cu_seqlens.dim() == 1 && in.cu_seqlens.sym_size(0) >= 1,
          "[delta_product] cu_seqlens must be [S+1], got ", show(in.cu_seqlens.sym_sizes()));
    check(B == 1, "[delta_product] cu_seqlens needs B = 1, got k ", show(k));
    check_sizes("state", in.state, {in.cu_seqlens.sym_size(0) - 1, H, K, V}, "[S,H,K,V]");
  } else {
    check_sizes("state", in.state, {B, H, K, V}, "[B,H,K,V]");
  }
  check_types(in);
  for (const Tensor* x : {&in.q, &in.v, &in.beta, &in.log_gate, &in.state})
    check(!x->defined() || x->device() == in.k.device(), "[delta_product] k is on ",
          in.k.device().str(), " and another input on ", x->defined() ? x->device().str() : "");
}

}  // namespace lrnn::ops
