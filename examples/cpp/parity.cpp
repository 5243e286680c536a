// Parity of a million bits with one reflection, by lrnn's op alone.
//
// The state is one number. A 1 reflects it (beta = 2: S <- S - 2 S), a 0 leaves it alone (beta = 0), so its
// sign is the parity. With beta at most 1 there is no such pair of transitions.
#include <ATen/ATen.h>

#include <iostream>

#include "ops/delta_product/delta_product.h"

int main() {
  const int64_t T = 1'000'000;
  const at::Tensor bits = at::randint(2, {1, T, 1, 1}, at::kLong);    // [B,T,N,H]
  const at::Tensor ones = at::ones({1, T, 1, 1});                     // [B,T,H,K]
  const auto out = lrnn::ops::delta_product({.q = ones,               // read the state as it is
                                             .k = ones.unsqueeze(2),  // [B,T,N,H,K]
                                             .v = at::zeros({1, T, 1, 1, 1}),
                                             .beta = 2 * bits.to(at::kFloat),
                                             .log_gate = {},
                                             .state = at::ones({1, 1, 1, 1}),
                                             .scale = 1.0,
                                             .cu_seqlens = {}});
  const at::Tensor odd = bits.flatten().cumsum(0).remainder(2);
  const bool right = at::equal((out.o.flatten() < 0).to(at::kLong), odd);
  std::cout << "parity after every one of " << T << " bits: " << (right ? "right" : "wrong") << "\n";
  return right ? 0 : 1;
}
