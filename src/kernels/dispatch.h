#pragma once
#include "kernels/isa.h"
#include "kernels/parallel.h"

// A kernel is compiled once per instruction set, each time in a namespace of that name, and chosen
// at run time: one binary serves every machine. CMakeLists.txt has the list of what is compiled so,
// and the flags.

// Declares something in the namespace of every instruction set, and names the one of `isa`.
#if defined(__x86_64__)
#define LRNN_EVERY_ISA(...) \
  namespace baseline {      \
  __VA_ARGS__               \
  }                         \
  namespace avx2 {          \
  __VA_ARGS__               \
  }                         \
  namespace avx512 {        \
  __VA_ARGS__               \
  }
#define LRNN_OF_ISA(isa, name)                           \
  ((isa) == ::lrnn::kernels::Isa::kAvx512 ? avx512::name \
   : (isa) == ::lrnn::kernels::Isa::kAvx2 ? avx2::name   \
                                          : baseline::name)
#else
#define LRNN_EVERY_ISA(...) \
  namespace baseline {      \
  __VA_ARGS__               \
  }
#define LRNN_OF_ISA(isa, name) (void(isa), baseline::name)
#endif

// The function `name(problem, parallel)`, which runs the best of them.
#define LRNN_KERNEL(name, Problem)                                     \
  LRNN_EVERY_ISA(void name(const Problem&, const Parallel&);)          \
  inline void name(const Problem& problem, const Parallel& parallel) { \
    LRNN_OF_ISA(best_isa(), name)(problem, parallel);                  \
  }
