#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lrnn::text {

// The ids of words seen before: a text says the same words again and again. It holds a bounded
// number of bytes; when it is full it forgets everything, which costs a thousandth of the time.
class WordCache {
 public:
  static constexpr size_t kSlots = size_t{1} << 19, kMostWords = kSlots / 2;
  static constexpr size_t kMostBytes = size_t{32} << 20, kLongest = 128;

  WordCache() : slots_(kSlots) {}

  // The ids of a word; a null pointer where it is not known.
  std::span<const int32_t> find(std::string_view word) const {
    if (word.size() > kLongest) return {};
    const uint64_t hash = hash_of(word);
    for (size_t i = hash % kSlots;; i = (i + 1) % kSlots) {
      const Slot& slot = slots_[i];
      if (slot.size == 0) return {};
      if (slot.hash == hash && slot.size == word.size() &&
          std::memcmp(words_.data() + slot.word, word.data(), word.size()) == 0)
        return {ids_.data() + slot.ids, slot.count};
    }
  }

  void add(std::string_view word, std::span<const int32_t> ids) {
    if (word.empty() || word.size() > kLongest || ids.empty()) return;
    if (count_ == kMostWords || words_.size() + 4 * ids_.size() > kMostBytes) clear();
    const uint64_t hash = hash_of(word);
    size_t i = hash % kSlots;
    while (slots_[i].size != 0) i = (i + 1) % kSlots;
    slots_[i] = {hash, uint32_t(words_.size()), uint32_t(word.size()), uint32_t(ids_.size()),
                 uint32_t(ids.size())};
    words_.append(word);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ++count_;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t word = 0, size = 0, ids = 0, count = 0;
  };

  // Eight bytes at a time, each mixed in by a multiplication.
  static uint64_t hash_of(std::string_view word) {
    uint64_t hash = word.size();
    const auto mix = [&](uint64_t part) {
      hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    };
    size_t at = 0;
    for (uint64_t part; at + 8 <= word.size(); at += 8) {
      std::memcpy(&part, word.data() + at, 8);
      mix(part);
    }
    uint64_t rest = 0;
    if (at < word.size()) std::memcpy(&rest, word.data() + at, word.size() - at);
    mix(rest);
    return hash;
  }
  void clear() {
    slots_.assign(kSlots, {});
    words_.clear();
    ids_.clear();
    count_ = 0;
  }

  std::vector<Slot> slots_;
  std::string words_;
  std::vector<int32_t> ids_;
  size_t count_ = 0;
};

}  // namespace lrnn::text
