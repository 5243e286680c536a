#include "ops/checks.h"
#include "ops/selective_scan/inner.h"
#include "ops/torch.h"

namespace lrnn::ops {
namespace {

constexpr Checks kScanChecks{"selective_scan"};

void check_scan_types(const SelectiveScan& in) {
  kScanChecks.type("u", in.u, {torch::kFloat32, torch::kFloat64, torch::kBFloat16},
                   "it must be float32, float64 or bfloat16");
  const auto type = in.u.scalar_type(), wide = wide_type(in.u);
  for (const auto& [name, x] :
       {std::pair("delta", in.delta), {"B", in.B}, {"C", in.C}, {"z", in.z}})
    kScanChecks.type(name, x, {type}, "it must have the dtype of u");
  for (const auto& [name, x] :
       {std::pair("A", in.A), {"D", in.D}, {"delta_bias", in.delta_bias}, {"state", in.state}})
    kScanChecks.type(name, x, {wide}, "it must be float32 (float64 for float64 inputs)");
  kScanChecks.type("cu_seqlens", in.cu_seqlens, {torch::kInt64}, "it must be int64");
}

}  // namespace

void check_selective_scan(const SelectiveScan& in) {
  check(in.u.defined() && in.delta.defined() && in.A.defined() && in.B.defined(),
        "[selective_scan] u, delta, A and B are needed");
  kScanChecks.dimensions("u", in.u, 3, "[B,T,D]");
  kScanChecks.dimensions("A", in.A, 2, "[D,N]");
  const c10::SymInt batch = in.u.sym_size(0), T = in.u.sym_size(1), D = in.u.sym_size(2),
                    N = in.A.sym_size(1);
  kScanChecks.sizes("A", in.A, {D, N}, "[D,N]");
  kScanChecks.sizes("delta", in.delta, {batch, T, D}, "[B,T,D]");
  kScanChecks.sizes("B", in.B, {batch, T, N}, "[B,T,N]");
  kScanChecks.sizes("C", in.C, {batch, T, N}, "[B,T,N]");
  kScanChecks.sizes("D", in.D, {D}, "[D]");
  kScanChecks.sizes("z", in.z, {batch, T, D}, "[B,T,D]");
  kScanChecks.sizes("delta_bias", in.delta_bias, {D}, "[D]");
  check(D >= 1 && N >= 1, "[selective_scan] D and N must be at least 1, got A ",
        show(in.A.sym_sizes()));
  check(in.C.defined() || !(in.D.defined() || in.z.defined()),
        "[selective_scan] D and z shape the output, which needs C");
  if (in.cu_seqlens.defined()) {
    kScanChecks.packed(in.cu_seqlens, batch, "u", in.u);
    kScanChecks.sizes("state", in.state, {in.cu_seqlens.sym_size(0) - 1, D, N}, "[S,D,N]");
  } else {
    kScanChecks.sizes("state", in.state, {batch, D, N}, "[B,D,N]");
  }
  check_scan_types(in);
  kScanChecks.same_device("u", in.u,
                          {in.delta, in.A, in.B, in.C, in.D, in.z, in.delta_bias, in.state});
}

}  // namespace lrnn::ops
