#pragma once
#include "kernels/dispatch.h"
#include "tests/close.h"
#include "tests/ops/delta_product_cases.h"

namespace lrnn {

// The definition in double, once, against the kernel on every instruction set of this machine.
inline void expect_definition(const ops::DeltaProduct& in, double limit) {
  const kernels::Isa best = kernels::best_isa();
  const int threads = at::get_num_threads();
  at::set_num_threads(1);  // its matrices are too small to share
  const Everything want = everything(in_double(in), ops::delta_product_definition);
  at::set_num_threads(threads);
  for (const auto isa : kernels::kIsas) {
    if (!kernels::has_isa(isa)) continue;
    SCOPED_TRACE(testing::Message() << kernels::name(isa));
    kernels::force_isa(isa);
    const Everything got = everything(in, ops::delta_product);
    ASSERT_EQ(got.tensors.size(), want.tensors.size());
    for (size_t i = 0; i < got.tensors.size(); ++i) {
      const auto& [name, x] = got.tensors[i];
      EXPECT_CLOSE_TO(name, x, want.tensors[i].second, limit);
    }
  }
  kernels::force_isa(best);
}

// Tokens [begin, end), from `state` on.
inline ops::DeltaProduct part(const ops::DeltaProduct& in, int64_t begin, int64_t end,
                              const torch::Tensor& state) {
  return {.q = in.q.slice(1, begin, end),
          .k = in.k.slice(1, begin, end),
          .v = in.v.slice(1, begin, end),
          .beta = in.beta.slice(1, begin, end),
          .log_gate = in.log_gate.slice(1, begin, end),
          .state = state,
          .scale = {},
          .cu_seqlens = {}};
}

}  // namespace lrnn
