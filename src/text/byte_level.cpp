#include "text/byte_level.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "text/word_cache.h"

namespace lrnn::text {
namespace {

// Merges one word. The candidates wait in a heap, so that a word of a million letters takes a
// million steps times their logarithm, not their square.
class Merger {
 public:
  explicit Merger(const ByteLevel& model) : model_(model) {}

  void merge(std::string_view word, Ids& out) {
    fill(word);
    for (size_t i = 0; i + 1 < symbols_.size(); ++i) consider(int32_t(i));
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const Candidate top = heap_.back();
      heap_.pop_back();
      Symbol& left = symbols_[size_t(top.at)];
      if (left.id != top.left || left.next < 0) continue;
      const Symbol& right = symbols_[size_t(left.next)];
      if (right.id != top.right) continue;
      left.id = top.id;
      symbols_[size_t(left.next)].id = kGone;
      left.next = right.next;
      if (left.next >= 0) symbols_[size_t(left.next)].before = top.at;
      if (left.before >= 0) consider(left.before);
      consider(top.at);
    }
    for (const auto& symbol : symbols_)
      if (symbol.id != kGone) out.push_back(symbol.id);
  }

 private:
  static constexpr int32_t kGone = -1;
  struct Symbol {
    int32_t id, before, next;
  };
  struct Candidate {
    int32_t rank, at, left, right, id;
  };
  static bool later(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  }

  void push(int32_t id) {
    const auto n = int32_t(symbols_.size());
    if (n > 0) symbols_.back().next = n;
    symbols_.push_back({id, n - 1, -1});
  }
  void fill(std::string_view word) {
    symbols_.clear();
    bool after_unknown = false;
    for (const char c : word) {
      const auto byte = static_cast<unsigned char>(c);
      const int32_t id = model_.letters[byte];
      if (id < 0 && model_.unknown < 0)
        throw Error(fmt::format("the tokenizer has no piece for the byte {:#04x}", byte),
                    "it was trained without the whole alphabet of bytes: text would be lost");
      if (id >= 0)
        push(id);
      else if (!after_unknown || !model_.fuse_unknown)
        push(model_.unknown);
      after_unknown = id < 0;
    }
  }
  void consider(int32_t at) {
    const Symbol& left = symbols_[size_t(at)];
    if (left.next < 0) return;
    const int32_t right = symbols_[size_t(left.next)].id;
    const auto found = model_.merges.find(ByteLevel::pair(left.id, right));
    if (found == model_.merges.end()) return;
    heap_.push_back({found->second.rank, at, left.id, right, found->second.id});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  const ByteLevel& model_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

class ByteLevelEncoder final : public Encoder {
 public:
  ByteLevelEncoder(const ByteLevel& model, Reading how)
      : model_(model), how_(how), merger_(model) {}

  void encode(std::string_view text, Ids& ids) override {
    const auto token = [&](int32_t id) { ids.push_back(id); };
    const Word word = [&](std::string_view w) { add(w, ids); };
    const auto plain = [&](std::string_view rest) { lrnn::text::cut(rest, model_.splits, word); };
    if (model_.normalized.empty())
      model_.raw.cut(text, how_.special, plain, token);
    else
      model_.raw.cut(
          text, how_.special,
          [&](std::string_view rest) { model_.normalized.cut(rest, how_.special, plain, token); },
          token);
  }

 private:
  void add(std::string_view word, Ids& ids) {
    if (const auto known = cache_.find(word); known.data()) {
      ids.insert(ids.end(), known.begin(), known.end());
      return;
    }
    const size_t before = ids.size();
    const auto whole =
        model_.whole.empty() ? model_.whole.end() : model_.whole.find(std::string(word));
    if (whole != model_.whole.end())
      ids.push_back(whole->second);
    else
      merger_.merge(word, ids);
    cache_.add(word, {ids.data() + before, ids.size() - before});
  }

  const ByteLevel& model_;
  Reading how_;
  Merger merger_;
  WordCache cache_;
};

class ByteLevelTokenizer final : public Tokenizer {
 public:
  explicit ByteLevelTokenizer(ByteLevel model) : model_(std::move(model)) {}

  std::unique_ptr<Encoder> encoder(Reading how) const override {
    return std::make_unique<ByteLevelEncoder>(model_, how);
  }
  int32_t vocabulary() const override { return int32_t(model_.pieces.size()); }
  std::optional<int32_t> find(std::string_view name) const override {
    const auto found = std::find(model_.pieces.begin(), model_.pieces.end(), name);
    if (name.empty() || found == model_.pieces.end()) return {};
    return int32_t(found - model_.pieces.begin());
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocabulary() || model_.pieces[size_t(id)].empty())
        throw Error(cat("the tokenizer has no id ", id),
                    cat("its vocabulary has ", vocabulary(), " pieces, from 0"));
      out += model_.pieces[size_t(id)];
    }
    return out;
  }

 private:
  ByteLevel model_;
};

}  // namespace

std::unique_ptr<Tokenizer> byte_level_tokenizer(ByteLevel model) {
  return std::make_unique<ByteLevelTokenizer>(std::move(model));
}

const std::array<std::string, 256>& byte_letters() {
  static const auto letters = [] {
    std::array<std::string, 256> out;
    const auto utf8 = [](int point) {
      if (point < 0x80) return std::string(1, char(point));
      return std::string{char(0xC0 | point >> 6), char(0x80 | (point & 0x3F))};
    };
    int next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool shows = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      out[size_t(b)] = utf8(shows ? b : next++);
    }
    return out;
  }();
  return letters;
}

std::string bytes_of_piece(const std::string& piece) {
  static const auto bytes = [] {
    std::unordered_map<std::string, char> out;
    for (int b = 0; b < 256; ++b) out[byte_letters()[size_t(b)]] = char(b);
    return out;
  }();
  std::string out;
  for (const auto& letter : characters(piece, "a piece of the tokenizer")) {
    const auto found = bytes.find(letter);
    if (found == bytes.end()) return piece;
    out += found->second;
  }
  return out;
}

}  // namespace lrnn::text
