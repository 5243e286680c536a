#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// CRC-32C (Castagnoli). It finds every flipped bit and every burst of up to 32 wrong bits, which is
// what a damaged file looks like; it is no defence against an attacker.
namespace lrnn {

class Crc32c {
 public:
  // Feeding a file in pieces gives the same sum as feeding it whole.
  void add(const void* data, size_t size);
  void add(std::string_view bytes) { add(bytes.data(), bytes.size()); }
  // `size` bytes more, whose own sum is known: they need not be read again.
  void add(const Crc32c& rest, uint64_t size);

  uint32_t value() const { return ~crc_; }
  std::string text() const;  // eight hexadecimal digits

 private:
  uint32_t crc_ = ~0u;
};

inline std::string crc32c(std::string_view bytes) {
  Crc32c sum;
  sum.add(bytes);
  return sum.text();
}

// What a file holds, in short.
struct FileSum {
  uint64_t bytes = 0;
  std::string crc32c;
};
// Read piece by piece: it may be larger than memory. An Error names a file that cannot be read.
FileSum sum_of_file(const std::string& path);

}  // namespace lrnn
