#pragma once
#include "kernels/cpu/units.h"
#include "kernels/diagonal.h"

// Between the dispatcher and the files built per instruction set.
namespace lrnn::kernels {

struct DiagonalUnits {
  void (*forward[3])(const DiagonalForward&, const Unit&);    // by Type
  void (*backward[3])(const DiagonalBackward&, const Unit&);  // by Type
};
extern const DiagonalUnits kDiagonalBaseline;
extern const DiagonalUnits kDiagonalAvx2;
extern const DiagonalUnits kDiagonalAvx512;

}  // namespace lrnn::kernels
