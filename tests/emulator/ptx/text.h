#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

// The text of one kernel in PTX, taken apart: registers, variables, labels and statements, still
// with the names of the text.
namespace lrnn::emulator {

struct Operand {
  enum Kind { kRegister, kNumber, kAddress, kList, kName, kSink } kind = kSink;
  int reg = -1;                // of an address: what it begins with
  int second = -1;             // the predicate of `%r1|%p1`
  uint64_t bits = 0;           // of a number; of an address: what is added
  bool negated = false;        // `!%p1`
  bool wide_float = false;     // `0d..`
  bool narrow_float = false;   // `0f..`
  std::string_view name;       // of a variable, a label or a parameter
  std::vector<Operand> items;  // of a list; of an address: `[%rd1, {%r1, %r2}]`
};

struct Statement {
  std::string_view opcode;
  int guard = -1;       // runs where this predicate is true,
  bool unless = false;  // or where it is false
  uint32_t line = 0;
  std::vector<Operand> operands;
};

struct Register {
  int width = 32;       // 1 (a predicate), 16, 32, 64
  std::string special;  // "%tid.x": set before the first statement
};

struct Variable {
  size_t offset = 0, size = 0, align = 1;
};

struct Text {
  std::string name;
  std::vector<Statement> statements;
  std::vector<Register> registers;
  std::unordered_map<std::string_view, uint32_t> labels;
  std::unordered_map<std::string_view, Variable> parameters, shared, local;
  std::vector<Variable> arguments;  // the parameters in order
  size_t parameter_bytes = 0, shared_bytes = 0, local_bytes = 0, shared_align = 16;
  uint32_t threads = 1024;  // the most a block may have
  uint32_t first_line = 1;  // of the entry in the module's text
};

// What a module's text holds outside its functions.
struct Module {
  std::string_view text;
  std::map<std::string, size_t, std::less<>> entries;            // where each kernel begins
  std::map<std::string, Variable, std::less<>> shared;           // the dynamic ones have no size
  std::map<std::string, std::string_view, std::less<>> globals;  // declarations of variables
};

Module find_entries(std::string_view text);
Text parse_entry(const Module& module, std::string_view name);

// Gives every register a place: words of 32 lanes each, shared by registers whose lives do not
// touch. Returns how many words a warp needs; `places` by register.
size_t place_registers(const Text& text, std::vector<uint32_t>& places);

[[noreturn]] void fault(const std::string& why);

}  // namespace lrnn::emulator
