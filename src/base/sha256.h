#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lrnn {

// SHA-256 (FIPS 180-4), for files that people compare with `sha256sum`; crc32c is the faster sum
// for files that only we read.
class Sha256 {
 public:
  // Feeding a file in pieces gives the same sum as feeding it whole.
  void add(std::string_view bytes);
  // 64 hexadecimal digits; nothing may be added afterwards.
  std::string text();

 private:
  void block(const unsigned char* bytes);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest_{};
  uint64_t size_ = 0;
};

std::string sha256(std::string_view bytes);
// Of a file, read in pieces; an Error that names it when it cannot be read.
std::string sha256_of_file(const std::string& path);

}  // namespace lrnn
