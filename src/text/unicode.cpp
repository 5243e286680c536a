#include "text/unicode.h"

#include <vector>

#include "base/text.h"

namespace lrnn::text {
namespace {

constexpr uint32_t kPoints = 0x110000;

struct Run {
  uint32_t first;
  uint8_t classes;
};

// The runs as one byte per code point: a look-up is a load.
std::vector<uint8_t> unfold() {
  static constexpr Run runs[] = {
#include "text/unicode_table.inc"
  };
  std::vector<uint8_t> out(kPoints);
  for (size_t i = 0; i < std::size(runs); ++i) {
    const uint32_t end = i + 1 < std::size(runs) ? runs[i + 1].first : kPoints;
    for (uint32_t c = runs[i].first; c < end; ++c) out[c] = runs[i].classes;
  }
  return out;
}

}  // namespace

const uint8_t* class_table() {
  static const std::vector<uint8_t> all = unfold();
  return all.data();
}

uint8_t classes_of(uint32_t point) { return point < kPoints ? class_table()[point] : 0; }

Character character_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return uint32_t(static_cast<unsigned char>(text[at + i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1, class_table()[first]};
  const size_t n = bytes_of_character(text.substr(at));
  if (n == 0) return {};
  uint32_t point = first & (0xFFu >> (n + 1));
  for (size_t i = 1; i < n; ++i) point = (point << 6) | (byte(i) & 0x3F);
  return {point, uint32_t(n), class_table()[point]};
}

Character last_character(std::string_view text) {
  for (size_t n = 1; n <= 4 && n <= text.size(); ++n) {
    const size_t at = text.size() - n;
    if (bytes_of_character(text.substr(at)) == n) return character_at(text, at);
  }
  return {};
}

}  // namespace lrnn::text
