#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

// CRC-32C (Castagnoli), eight bytes at a time. It finds every flipped bit and every burst of up to
// 32 wrong bits, which is what a damaged file looks like; it is no defence against an attacker.
namespace lrnn {

class Crc32c {
 public:
  // Feeding a file in pieces gives the same sum as feeding it whole.
  void add(const void* data, size_t size) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (; size >= 8; p += 8, size -= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      word ^= crc_;
      crc_ = 0;
      for (int i = 0; i < 8; ++i) crc_ ^= kTable[7 - i][(word >> (8 * i)) & 0xFF];
    }
    for (; size > 0; ++p, --size) crc_ = kTable[0][(crc_ ^ *p) & 0xFF] ^ (crc_ >> 8);
  }
  void add(std::string_view bytes) { add(bytes.data(), bytes.size()); }

  uint32_t value() const { return ~crc_; }
  // Eight hexadecimal digits.
  std::string text() const {
    char out[9];
    std::snprintf(out, sizeof out, "%08x", static_cast<unsigned>(value()));
    return out;
  }

 private:
  using Table = std::array<std::array<uint32_t, 256>, 8>;
  static constexpr Table make_table() {
    Table table{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0u);
      table[0][byte] = crc;
    }
    for (size_t i = 1; i < 8; ++i)
      for (size_t byte = 0; byte < 256; ++byte) {
        const uint32_t before = table[i - 1][byte];
        table[i][byte] = (before >> 8) ^ table[0][before & 0xFF];
      }
    return table;
  }
  static const Table kTable;

  uint32_t crc_ = ~0u;
};

inline constexpr Crc32c::Table Crc32c::kTable = Crc32c::make_table();

inline std::string crc32c(std::string_view bytes) {
  Crc32c sum;
  sum.add(bytes);
  return sum.text();
}

}  // namespace lrnn
