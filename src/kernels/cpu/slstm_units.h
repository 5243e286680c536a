#pragma once
#include "kernels/cpu/units.h"
#include "kernels/slstm.h"

// Between the dispatcher and the files built per instruction set.
namespace lrnn::kernels {

// One head of the sequences first .. last-1.
struct SlstmGroup {
  int64_t head, group, first, last;
};

inline Unit slstm_unit(const SlstmInputs& p, const SlstmGroup& g, int64_t s) {
  if (!p.cu_seqlens) return {s, g.head, s, 0, p.T};
  return {s, g.head, 0, p.cu_seqlens[s], p.cu_seqlens[s + 1] - p.cu_seqlens[s]};
}

struct SlstmUnits {
  void (*forward[3])(const SlstmForward&, const SlstmGroup&);    // by Type
  void (*backward[3])(const SlstmBackward&, const SlstmGroup&);  // by Type
};
extern const SlstmUnits kSlstmBaseline;
extern const SlstmUnits kSlstmAvx2;
extern const SlstmUnits kSlstmAvx512;

}  // namespace lrnn::kernels
