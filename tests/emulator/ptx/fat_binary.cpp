#include "tests/emulator/ptx/fat_binary.h"

#include <cstdint>
#include <cstring>

#include "tests/emulator/ptx/text.h"

namespace lrnn::emulator {
namespace {

// As cuobjdump shows them; the layout is the same since CUDA 9.
struct Wrapper {
  uint32_t magic, version;
  const unsigned char* data;
};
struct Header {
  uint32_t magic;
  uint16_t version, bytes;
  uint64_t rest;  // behind the header
};
struct Part {
  uint16_t kind, version;
  uint32_t bytes;       // of this header
  uint64_t payload;     // padded
  uint32_t compressed;  // its size, or 0
  uint32_t options;
  uint16_t minor, major;
  uint32_t chip;
};
constexpr uint32_t kWrapper = 0x466243b1, kHeader = 0xba55ed50;
constexpr uint16_t kPtx = 1;

template <class T> T read(const unsigned char* at) {
  T x;
  std::memcpy(&x, at, sizeof x);
  return x;
}

}  // namespace

std::string_view ptx_of(const void* wrapper) {
  const auto outer = read<Wrapper>(static_cast<const unsigned char*>(wrapper));
  if (outer.magic != kWrapper) fault("a fat binary of an unknown layout");
  const auto header = read<Header>(outer.data);
  if (header.magic != kHeader) fault("a fat binary of an unknown layout");
  const unsigned char *at = outer.data + header.bytes, *const end = at + header.rest;
  bool compressed = false;
  uint32_t newest = 0;
  std::string_view found;
  while (at < end) {
    const auto part = read<Part>(at);
    const auto* const text = reinterpret_cast<const char*>(at + part.bytes);
    if (part.kind == kPtx) {
      // Text begins with a comment; what is compressed does not.
      if (text[0] != '/' && text[0] != '\n')
        compressed = true;
      else if (part.chip >= newest)
        newest = part.chip, found = {text, strnlen(text, part.payload)};
    }
    at += part.bytes + part.payload;
  }
  if (!found.empty()) return found;
  fault(compressed ? "PTX is compressed: build with -DLRNN_CUDA_PTX=ON"
                   : "the kernels have no PTX: build with -DLRNN_CUDA_PTX=ON");
}

}  // namespace lrnn::emulator
