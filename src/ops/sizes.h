#pragma once
#include <array>
#include <string>
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
  void set(char letter, c10::SymInt size) { of(letter) = std::move(size), known(letter) = true; }
  const c10::SymInt& operator[](char letter) const { return of_[size_t(letter)]; }

 private:
  void bind(const Slot& slot);
  void require(const Slot& slot) const;
  std::string letters(const char* shape) const;
  c10::SymInt& of(char letter) { return of_[size_t(letter)]; }
  bool& known(char letter) { return known_[size_t(letter)]; }

  const char* op_;
  bool packed_ = false;
  std::array<c10::SymInt, 'Z' + 1> of_;
  std::array<bool, 'Z' + 1> known_{};
  std::vector<c10::SymInt> leading_;  // what * stands for
};

// Types and devices, as the kinds of the fields say.
void check_types(const char* op, c10::ArrayRef<Slot> inputs);

const Slot& main_slot(c10::ArrayRef<Slot> inputs);

}  // namespace lrnn::ops
