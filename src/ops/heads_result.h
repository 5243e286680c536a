#pragma once
#include "ops/field.h"

// What a recurrence with a state [K,V] per head gives. kQuery: the letter of its queries, without
// which nobody asks for outputs.
namespace lrnn::ops {

template <char kQuery> struct HeadsResult {
  torch::Tensor o;      // [B,T,H,V]; undefined without queries
  torch::Tensor state;  // [B,H,K,V] (or [S,H,K,V]); float32 for bfloat16 inputs

  static constexpr char kQueries[] = {kQuery, 0};
  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.o, result("o", "BTHV", Kind::kIo, kQueries));
    visit(out.state, result("state", "SHKV", Kind::kWide));
  }
};

}  // namespace lrnn::ops
