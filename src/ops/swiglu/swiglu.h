#pragma once
#include "base/error.h"
#include "ops/sizes.h"

namespace lrnn::ops {

// silu(gate) * up, elementwise.
torch::Tensor swiglu(const torch::Tensor& gate, const torch::Tensor& up);
torch::Tensor swiglu_definition(const torch::Tensor& gate, const torch::Tensor& up);
// The same of the two halves of one product, [..,2D] -> [..,D]; its gradient needs no joining.
torch::Tensor swiglu(const torch::Tensor& gate_up);
torch::Tensor swiglu_definition(const torch::Tensor& gate_up);

struct SwigluResult {
  torch::Tensor h;

  template <class Self, class Visit> static void fields(Self& out, Visit&& visit) {
    visit(out.h, result("h", "*D"));
  }
};

struct Swiglu {
  torch::Tensor gate, up;

  static constexpr const char* kName = "swiglu";
  static constexpr bool kCheap = true;  // to make again
  using Result = SwigluResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.gate, main_input("gate", "*D"));
    visit(in.up, needed("up", "*D"));
  }
};

struct SwigluHalves {
  torch::Tensor gate_up;

  static constexpr const char* kName = "swiglu_halves";
  static constexpr bool kCheap = true;
  using Result = SwigluResult;
  template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
    visit(in.gate_up, main_input("gate_up", "*E"));
  }
  static void more_letters(SizesByLetter& sizes) { sizes.set('D', sizes['E'] / 2); }
  void check() const {
    lrnn::check(gate_up.sym_size(-1) % 2 == 0,
                "[swiglu] one tensor must hold two halves side by side, got ",
                show(gate_up.sym_sizes()));
  }
};

// One half and the other, where they lie.
inline Swiglu halves_of(const torch::Tensor& both) {
  const int64_t D = both.size(-1) / 2;
  return {both.narrow(-1, 0, D), both.narrow(-1, D, D)};
}

}  // namespace lrnn::ops
