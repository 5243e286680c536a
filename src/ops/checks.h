#pragma once
#include <torch/types.h>

#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"

// Checks of an op's inputs, each of which throws one sentence that says what was expected. Tensors
// that are not defined pass; sizes may be symbolic.
namespace lrnn::ops {

inline std::string show(c10::SymIntArrayRef sizes) {
  std::ostringstream out;
  out << '[';
  for (size_t i = 0; i < sizes.size(); ++i) out << (i ? ", " : "") << sizes[i];
  out << ']';
  return out.str();
}

struct Checks {
  using Tensor = torch::Tensor;
  using Sizes = std::vector<c10::SymInt>;
  const char* op;

  void dimensions(const char* name, const Tensor& x, int64_t n, const char* letters) const {
    check(x.dim() == n, "[", op, "] ", name, " must have ", n, " dimensions ", letters, ", got ",
          show(x.sym_sizes()));
  }
  void sizes(const char* name, const Tensor& x, const Sizes& want, const char* letters) const {
    if (!x.defined() || x.sym_sizes() == c10::SymIntArrayRef(want)) return;
    throw Error(cat("[", op, "] ", name, " must be ", show(want), " = ", letters, ", got ",
                    show(x.sym_sizes())));
  }
  void type(const char* name, const Tensor& x, std::initializer_list<torch::Dtype> allowed,
            const char* why) const {
    if (!x.defined()) return;
    for (const auto type : allowed)
      if (x.scalar_type() == type) return;
    throw Error(cat("[", op, "] ", name, " is ", x.scalar_type(), ", but ", why));
  }
  void packed(const Tensor& cu_seqlens, const c10::SymInt& batch, const char* name,
              const Tensor& x) const {
    check(cu_seqlens.dim() == 1 && cu_seqlens.sym_size(0) >= 1, "[", op,
          "] cu_seqlens must be [S+1], got ", show(cu_seqlens.sym_sizes()));
    check(batch == 1, "[", op, "] cu_seqlens needs B = 1, got ", name, " ", show(x.sym_sizes()));
  }
  void same_device(const char* name, const Tensor& x, std::initializer_list<Tensor> others) const {
    for (const Tensor& y : others)
      check(!y.defined() || y.device() == x.device(), "[", op, "] ", name, " is on ",
            x.device().str(), " and another input on ", y.defined() ? y.device().str() : "");
  }
};

}  // namespace lrnn::ops
