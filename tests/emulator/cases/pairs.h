#pragma once
#include "tests/emulator/cases/case.h"

// One operation on all pairs of some values: an Op has the types In, By and Out, on_gpu(x, y),
// which is one statement of PTX, and wanted(x, y), another way to the same number on the host.
namespace lrnn::emulator::cases {

template <class Op>
__global__ void on_pairs(const typename Op::In* in, const typename Op::By* by,
                         typename Op::Out* out, int count, int width) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = Op::on_gpu(in[i / width], by[i % width]);
}

template <class Op>
bool agrees(const char* name, const std::vector<typename Op::In>& in,
            const std::vector<typename Op::By>& by) {
  const int count = int(in.size() * by.size());
  const Array<typename Op::In> left(in);
  const Array<typename Op::By> right(by);
  const Array<typename Op::Out> out(static_cast<size_t>(count));
  on_pairs<Op>
      <<<(count + 63) / 64, 64>>>(left.data(), right.data(), out.data(), count, int(by.size()));
  std::vector<typename Op::Out> wanted;
  for (const auto x : in)
    for (const auto y : by) wanted.push_back(Op::wanted(x, y));
  if (same(out.values(), wanted)) return true;
  std::printf("%s is wrong\n", name);
  return false;
}

}  // namespace lrnn::emulator::cases

// struct NAME of one statement: `opcode %0, %1, %2;` with the register letters of asm().
#define LRNN_OPCODE(NAME, OPCODE, OUT, OUT_LETTER, IN, IN_LETTER, BY, BY_LETTER, ...)         \
  struct NAME {                                                                               \
    using In = IN;                                                                            \
    using By = BY;                                                                            \
    using Out = OUT;                                                                          \
    static __device__ OUT on_gpu(IN x, BY y) {                                                \
      OUT d;                                                                                  \
      asm volatile(OPCODE " %0, %1, %2;\n" : "=" OUT_LETTER(d) : IN_LETTER(x), BY_LETTER(y)); \
      return d;                                                                               \
    }                                                                                         \
    static OUT wanted(IN x, BY y) { __VA_ARGS__ }                                             \
  }
