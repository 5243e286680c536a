#pragma once
#include <cstdint>
#include <functional>

// How a call finds its kernel: the instruction set, and who shares out the work.
namespace lrnn::kernels {

// The instruction sets the kernels are built for, and the one that every kernel uses.
enum class Isa : uint8_t { kBaseline, kAvx2, kAvx512 };
inline constexpr Isa kIsas[] = {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512};

// The best of this machine, unless one was forced (by a test).
Isa best_isa();
bool has_isa(Isa isa);
void force_isa(Isa isa);
const char* name(Isa isa);
bool has_f16c();

// How a kernel hands out independent pieces of work: calls body(i) for i in 0..n-1, in any order,
// perhaps at once. The ops pass LibTorch's thread pool; tests may pass a plain loop. The result
// never depends on which thread runs which piece, nor on their number.
struct Parallel {
  using Body = std::function<void(int64_t i)>;
  std::function<void(int64_t n, const Body& body)> run;
  int64_t threads = 1;  // that may work at once
  void operator()(int64_t n, const Body& body) const { run(n, body); }
};

// All on this thread.
extern const Parallel serial;

}  // namespace lrnn::kernels

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
