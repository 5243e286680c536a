#pragma once
#include <algorithm>
#include <map>

#include "tests/emulator/ptx/warp.h"

// From a statement of the text to an instruction that runs: each family of opcodes has a function
// that knows its own and says no to others.
namespace lrnn::emulator {

enum class Type {
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF32,
  kF64,
  kOther
};
Type type_named(std::string_view name);
int bits_of(Type type);

class Decoding {
 public:
  Decoding(const Text& text, const std::vector<uint32_t>& places, Function& function)
      : text(text), places_(places), function_(function) {}

  void begin(const Statement& s);
  // Is the opcode `base`, and does it have this word behind a dot?
  bool is(std::string_view base) const { return parts[0] == base; }
  bool has(std::string_view word) const {
    return std::find(parts.begin() + 1, parts.end(), word) != parts.end();
  }
  bool opcode_ends(std::string_view with) const { return s->opcode.ends_with(with); }
  Type type() const { return type_named(parts.back()); }
  size_t size() const { return s->operands.size(); }
  const Operand& operand(size_t i) const {
    if (i >= size()) stop("an operand is missing");
    return s->operands[i];
  }
  // Where an operand's values lie; a number becomes a constant of this width.
  uint32_t place(size_t i, int width) { return place(operand(i), width); }
  uint32_t place(const Operand& o, int width);
  uint32_t constant(uint64_t bits, int width);
  int width(size_t i) const { return width(operand(i)); }
  int width(const Operand& o) const { return o.reg < 0 ? 0 : text.registers[size_t(o.reg)].width; }
  uint64_t number(size_t i) const {
    if (operand(i).kind != Operand::kNumber) stop("an operand is no number");
    return operand(i).bits;
  }
  // An address in a register and what is added to it; true where the register has 64 bits.
  bool address(const Operand& o, uint32_t& place, int64_t& added);
  // A list's places, in Function::lists.
  uint32_t list(const std::vector<Operand>& items, int width);
  // Numbers that belong to the instruction, in the same lists.
  uint32_t raw_list(const std::vector<uint32_t>& numbers);
  [[noreturn]] void stop(const std::string& why) const;

  const Text& text;
  const Statement* s = nullptr;
  std::vector<std::string_view> parts;

 private:
  const std::vector<uint32_t>& places_;
  Function& function_;
  std::map<std::pair<uint64_t, int>, uint32_t> constants_;
};

bool decode_arithmetic(Decoding& d, Instruction& i);
bool decode_float(Decoding& d, Instruction& i);
bool decode_convert(Decoding& d, Instruction& i);
bool decode_move(Decoding& d, Instruction& i);
bool decode_load_store(Decoding& d, Instruction& i);
bool decode_lanes(Decoding& d, Instruction& i);
bool decode_control(Decoding& d, Instruction& i);
bool decode_matrix(Decoding& d, Instruction& i);
bool decode_async(Decoding& d, Instruction& i);

Function decode(Text& text);

// Values of 8 and 16 bits lie in cells of 32.
template <class T> using Cell = std::conditional_t<sizeof(T) < 4, uint32_t, T>;
template <class T> inline T get(Cell<T> x) { return T(x); }
template <class T> inline Cell<T> put(T x) {
  if constexpr (sizeof(T) < 4)
    return uint32_t(x);  // with its sign, as in a register of 32
  else
    return x;
}

}  // namespace lrnn::emulator
