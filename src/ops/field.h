#pragma once
#include <torch/types.h>

#include <cstdint>
#include <limits>

// How an op's struct lists its tensors: once, in a function `fields`, as configs list their keys.
// Everything else follows from the list (ops/declare.h).
//
//   struct Decay {
//     static constexpr const char* kName = "decay";
//     using Result = DecayResult;
//     torch::Tensor x, state;
//     double rate = 0.5;
//     template <class Self, class Visit> static void fields(Self& in, Visit&& visit) {
//       visit(in.x, main_input("x", "BTD"));
//       visit(in.state, optional("state", "SD", Kind::kWide));
//       visit(in.rate, "rate");
//     }
//   };
namespace lrnn::ops {

// How the type of a tensor follows from that of the main input.
enum class Kind : uint8_t {
  kIo,        // the same: float32, float64 or bfloat16; float16 through float32 (ops/half.h)
  kWide,      // float32, or float64 beside float64: states
  kIoOrWide,  // either: gates, step sizes, parameters
  kCast,      // any: it is read in the type of the main input
  kIndex,     // int64 or int32
};

// Of a number that has no default.
constexpr double kToBeGiven = std::numeric_limits<double>::quiet_NaN();

enum class Need : uint8_t {
  kMain,  // needed, and the others follow its type
  kNeeded,
  kForOutputs,  // in C++ it may be left out: then only the state is wanted
  kOptional,
};

struct Field {
  const char* name;
  // A letter per dimension; the same letter is the same size everywhere. S: sequences, B of them or
  // what cu_seqlens says. *: any dimensions. A digit is that size. (K) at the end of an optional
  // input: a dimension that may be missing.
  const char* shape;
  Kind kind = Kind::kIo;
  Need need = Need::kNeeded;
  // Of an input: the only output it matters to. Of a result: the input without which nobody asks
  // for it.
  const char* beside = nullptr;
  bool saved = false;    // of a result: backward reads it
  bool unused = false;   // of an input: backward needs its size alone
  bool by_name = false;  // in Python it, and what follows it, is given by name
  // The letters in the order they have in memory, where that is another one. Tensors reach back
  // ends so, and results and gradients are made so.
  const char* memory = nullptr;

  constexpr Field unread() const {
    Field out = *this;
    out.unused = true;
    return out;
  }
  constexpr Field laid_out(const char* as) const {
    Field out = *this;
    out.memory = as;
    return out;
  }
};

constexpr Field main_input(const char* name, const char* shape) {
  return {name, shape, Kind::kIo, Need::kMain};
}
constexpr Field needed(const char* name, const char* shape, Kind kind = Kind::kIo) {
  return {name, shape, kind, Need::kNeeded};
}
constexpr Field for_output(const char* output, const char* name, const char* shape) {
  return {name, shape, Kind::kIo, Need::kForOutputs, output};
}
constexpr Field optional(const char* name, const char* shape, Kind kind = Kind::kIo,
                         const char* output = nullptr) {
  return {name, shape, kind, Need::kOptional, output};
}
// int64 or int32 [S+1]: B is 1 and T holds S sequences end to end.
constexpr Field sequence_bounds(bool by_name = true) {
  Field out{"cu_seqlens", "", Kind::kIndex, Need::kOptional};
  out.by_name = by_name;
  return out;
}
constexpr Field result(const char* name, const char* shape, Kind kind = Kind::kIo,
                       const char* input = nullptr) {
  return {name, shape, kind, Need::kNeeded, input};
}
constexpr Field saved_result(const char* name, const char* shape, Kind kind = Kind::kIo) {
  return {name, shape, kind, Need::kNeeded, nullptr, true};
}

// A field of a certain struct.
struct Slot {
  Field field;
  const torch::Tensor* x;
};

}  // namespace lrnn::ops
