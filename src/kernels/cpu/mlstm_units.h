#pragma once
#include "kernels/cpu/units.h"
#include "kernels/mlstm.h"

// Between the dispatcher and the files built per instruction set.
namespace lrnn::kernels {

struct MlstmUnits {
  void (*forward[3])(const MlstmForward&, const Unit&);    // by Type
  void (*backward[3])(const MlstmBackward&, const Unit&);  // by Type
};
extern const MlstmUnits kMlstmBaseline;
extern const MlstmUnits kMlstmAvx2;
extern const MlstmUnits kMlstmAvx512;

}  // namespace lrnn::kernels
