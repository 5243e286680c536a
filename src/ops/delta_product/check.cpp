#include "base/error.h"
#include "ops/checks.h"
#include "ops/delta_product/inner.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

using torch::Tensor;
constexpr Checks kDeltaProductChecks{"delta_product"};

void check_types(const DeltaProduct& in) {
  kDeltaProductChecks.type("k", in.k, {torch::kFloat32, torch::kFloat64, torch::kBFloat16},
                           "q, k and v must be float32, float64 or bfloat16");
  const auto type = in.k.scalar_type(), wide = wide_type(in.k);
  kDeltaProductChecks.type("q", in.q, {type}, "it must have the dtype of k");
  kDeltaProductChecks.type("v", in.v, {type}, "it must have the dtype of k");
  kDeltaProductChecks.type("beta", in.beta, {type, wide},
                           "it must have the dtype of k, or float32 beside bfloat16");
  kDeltaProductChecks.type("log_gate", in.log_gate, {type, wide},
                           "it must have the dtype of k, or float32 beside bfloat16");
  kDeltaProductChecks.type("state", in.state, {wide},
                           "it must be float32 (float64 for float64 inputs)");
  kDeltaProductChecks.type("cu_seqlens", in.cu_seqlens, {torch::kInt64}, "it must be int64");
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
  kDeltaProductChecks.sizes("q", in.q, {B, T, H, K}, "[B,T,H,K]");
  kDeltaProductChecks.sizes("v", in.v, {B, T, N, H, V}, "[B,T,N,H,V]");
  kDeltaProductChecks.sizes("beta", in.beta, {B, T, N, H}, "[B,T,N,H]");
  kDeltaProductChecks.sizes("log_gate", in.log_gate, {B, T, H}, "[B,T,H]");
  check(N >= 1 && K >= 1 && V >= 1, "[delta_product] N, K and V must be at least 1, got k ",
        show(k), " and v ", show(in.v.sym_sizes()));
  if (in.cu_seqlens.defined()) {
    kDeltaProductChecks.packed(in.cu_seqlens, B, "k", in.k);
    kDeltaProductChecks.sizes("state", in.state, {in.cu_seqlens.sym_size(0) - 1, H, K, V},
                              "[S,H,K,V]");
  } else {
    kDeltaProductChecks.sizes("state", in.state, {B, H, K, V}, "[B,H,K,V]");
  }
  check_types(in);
  check(in.precision.empty() || in.precision == "fast" || in.precision == "accurate" ||
            in.precision == "exact",
        "[delta_product] precision must be fast, accurate or exact, got '", in.precision, "'");
  kDeltaProductChecks.same_device("k", in.k, {in.q, in.v, in.beta, in.log_gate, in.state});
}

}  // namespace lrnn::ops
