#pragma once
#include <cstddef>
#include <cstdint>

namespace lrnn::automata {

// States, symbols and elements are int64_t; vectors want size_t.
inline size_t at(int64_t i) { return static_cast<size_t>(i); }

}  // namespace lrnn::automata
