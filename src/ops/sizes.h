#pragma once
#include <c10/util/SmallVector.h>

#include <string>
#include <utility>
#include <vector>

#include "ops/field.h"

// Sizes by letter, and the checks of an op's inputs. Sizes may be symbolic.
namespace lrnn::ops {

std::string show(c10::SymIntArrayRef sizes);

class SizesByLetter {
 public:
  // Takes every letter's size from the inputs. One clear sentence, as lrnn::Error, for the first
  // that is missing or does not fit.
  SizesByLetter(const char* op, c10::ArrayRef<Slot> inputs);

  std::vector<c10::SymInt> sizes(const char* shape) const;
  // A letter that no input has: of a result alone.
  void set(char letter, c10::SymInt size) { known_.emplace_back(letter, std::move(size)); }
  const c10::SymInt& operator[](char letter) const { return *find(letter); }

 private:
  void bind(const Slot& slot);
  void require(const Slot& slot) const;
  bool fits(const Slot& slot) const;
  std::string letters(const char* shape) const;
  const c10::SymInt* find(char letter) const;

  const char* op_;
  bool packed_ = false;
  // A handful, and made for every call of every op: no table of all letters.
  c10::SmallVector<std::pair<char, c10::SymInt>, 8> known_;
  c10::SmallVector<c10::SymInt, 4> leading_;  // what * stands for
};

// Types and devices, as the kinds of the fields say.
void check_types(const char* op, c10::ArrayRef<Slot> inputs);

const Slot& main_slot(c10::ArrayRef<Slot> inputs);

// Memory of these sizes, and x, in the order that the field asks for.
torch::Tensor empty_as(const Field& field, c10::SymIntArrayRef sizes,
                       const torch::TensorOptions& options);
torch::Tensor laid_out_as(const Field& field, const torch::Tensor& x);

}  // namespace lrnn::ops
