#include "base/checksum.h"

#include <array>
#include <cstdio>
#include <cstring>

#include "base/atomic_file.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace lrnn {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78u;  // bit 31 is the coefficient of 1

using Table = std::array<std::array<uint32_t, 256>, 8>;
constexpr Table make_table() {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0u);
    table[0][byte] = crc;
  }
  for (size_t i = 1; i < 8; ++i)
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = table[i - 1][byte];
      table[i][byte] = (before >> 8) ^ table[0][before & 0xFF];
    }
  return table;
}
constexpr Table kTable = make_table();

uint64_t word_at(const unsigned char* p) {
  uint64_t word;
  std::memcpy(&word, p, 8);
  return word;
}

uint32_t by_table(uint32_t crc, const unsigned char* p, size_t size) {
  for (; size >= 8; p += 8, size -= 8) {
    const uint64_t word = word_at(p) ^ crc;
    crc = 0;
    for (int i = 0; i < 8; ++i) crc ^= kTable[7 - i][(word >> (8 * i)) & 0xFF];
  }
  for (; size > 0; ++p, --size) crc = kTable[0][(crc ^ *p) & 0xFF] ^ (crc >> 8);
  return crc;
}

#ifdef __x86_64__
// Five times as fast: large checkpoints wait for this.
__attribute__((target("sse4.2"))) uint32_t by_instruction(uint32_t crc, const unsigned char* p,
                                                          size_t size) {
  uint64_t wide = crc;
  for (; size >= 8; p += 8, size -= 8) wide = _mm_crc32_u64(wide, word_at(p));
  crc = uint32_t(wide);
  for (; size > 0; ++p, --size) crc = _mm_crc32_u8(crc, *p);
  return crc;
}
const bool has_instruction = __builtin_cpu_supports("sse4.2");
#endif

// The product of two polynomials modulo ours.
uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t out = 0;
  for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
    if (a & bit) out ^= b;
    b = (b >> 1) ^ (b & 1 ? kPolynomial : 0u);
  }
  return out;
}

// x to the power of eight times `bytes`: what so many bytes behind it make of a sum.
uint32_t shift_by(uint64_t bytes) {
  uint32_t out = 1u << 31, square = 1u << 23;
  for (; bytes; bytes >>= 1, square = multiply(square, square))
    if (bytes & 1) out = multiply(square, out);
  return out;
}

}  // namespace

void Crc32c::add(const void* data, size_t size) {
  const auto* const p = static_cast<const unsigned char*>(data);
#ifdef __x86_64__
  if (has_instruction) {
    crc_ = by_instruction(crc_, p, size);
    return;
  }
#endif
  crc_ = by_table(crc_, p, size);
}

void Crc32c::add(const Crc32c& rest, uint64_t size) {
  crc_ = ~(multiply(shift_by(size), value()) ^ rest.value());
}

std::string Crc32c::text() const {
  char out[9];
  std::snprintf(out, sizeof out, "%08x", static_cast<unsigned>(value()));
  return out;
}

FileSum sum_of_file(const std::string& path) {
  FileSum out;
  Crc32c sum;
  read_in_pieces(path, [&](std::string_view piece) { out.bytes += piece.size(), sum.add(piece); });
  out.crc32c = sum.text();
  return out;
}

}  // namespace lrnn
