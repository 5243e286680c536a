#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace lrnn::text {

// Reads the fields of a protobuf message one after another: number and value, no schema.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  struct Field {
    uint64_t number = 0, value = 0;  // the value of a whole number
    std::string_view bytes;          // of a text, or of a message inside
  };
  // Nothing at the end; `broken()` says whether it was one.
  std::optional<Field> next() {
    if (rest_.empty() || broken_) return {};
    Field out;
    const uint64_t tag = varint();
    out.number = tag >> 3;
    switch (tag & 7) {
      case 0: out.value = varint(); break;
      case 1: take(8); break;
      case 2: out.bytes = take(varint()); break;
      case 5: take(4); break;
      default: broken_ = true;
    }
    if (broken_) return {};
    return out;
  }
  bool broken() const { return broken_; }

 private:
  uint64_t varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      out |= uint64_t(byte & 0x7F) << shift;
      if (byte < 0x80) return out;
    }
    broken_ = true;
    return 0;
  }
  std::string_view take(uint64_t size) {
    if (size > rest_.size()) broken_ = true;
    const auto out = rest_.substr(0, size);
    rest_.remove_prefix(out.size());
    return out;
  }

  std::string_view rest_;
  bool broken_ = false;
};

}  // namespace lrnn::text
