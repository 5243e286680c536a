#pragma once
#include <cstdint>

namespace lrnn::emulator {

// What cuTensorMapEncodeTiled writes into the 128 bytes of a CUtensorMap, whose real layout nobody
// tells. Dimension 0 moves fastest, its elements lie side by side: strides[i] is of dimension i
// + 1.
struct TensorMap {
  static constexpr uint32_t kMagic = 0x50414d54;  // "TMAP"
  static constexpr int kMostRank = 5;

  uint64_t base = 0;                     // the address of element 0
  uint64_t strides[kMostRank - 1]{};     // bytes
  uint32_t sizes[kMostRank]{};           // elements, less one: 2^32 is allowed
  uint16_t box[kMostRank]{};             // elements, 1 to 256
  uint8_t element_strides[kMostRank]{};  // 1 to 8
  uint8_t rank = 0;
  uint8_t type = 0;  // CUtensorMapDataType
  uint8_t element_bytes = 0;
  uint8_t interleave = 0;   // CUtensorMapInterleave
  uint8_t swizzle = 0;      // CUtensorMapSwizzle
  uint8_t fill = 0;         // CUtensorMapFloatOOBfill
  uint32_t magic = kMagic;  // anything else is no tensor map

  uint64_t size(int dimension) const { return uint64_t(sizes[dimension]) + 1; }
};
static_assert(sizeof(TensorMap) <= 128);

}  // namespace lrnn::emulator
