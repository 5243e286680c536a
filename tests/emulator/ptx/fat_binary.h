#pragma once
#include <string_view>

namespace lrnn::emulator {

// The PTX of a fat binary for the newest chip it has any for, as the compiler's code hands it to
// the CUDA runtime.
std::string_view ptx_of(const void* wrapper);

}  // namespace lrnn::emulator
