#include "text/generated_text.h"

#include <algorithm>

#include "base/text.h"

namespace lrnn::text {
namespace {

constexpr const char* kBroken = "\uFFFD";

// How many of the last bytes may be the beginning of a character that is not there yet.
size_t unfinished(std::string_view bytes) {
  for (size_t n = 1; n <= 3 && n <= bytes.size(); ++n) {
    const auto first = static_cast<unsigned char>(bytes[bytes.size() - n]);
    if ((first & 0xC0) == 0x80) continue;
    return bytes_of_character(first) > n ? n : 0;
  }
  return 0;
}

}  // namespace

namespace {

// Whether an id stands for anything; twice, because the first piece of a text may lose its space.
bool says_something(const Tokenizer& tokenizer, int32_t id) {
  const int32_t twice[] = {id, id};
  return !tokenizer.decode(twice).empty();
}

}  // namespace

std::string whole_characters(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const size_t n = bytes_of_character(bytes);
    out += n ? bytes.substr(0, n) : kBroken;
    bytes.remove_prefix(std::max<size_t>(n, 1));
  }
  return out;
}

GeneratedText::GeneratedText(const Tokenizer& tokenizer, std::span<const int32_t> before,
                             std::vector<std::string> stops)
    : tokenizer_(tokenizer), stops_(std::move(stops)) {
  std::erase(stops_, "");
  for (auto id = before.rbegin(); id != before.rend() && context_.empty(); ++id)
    if (says_something(tokenizer, *id)) context_ = {*id};
}

// The first piece of a text may lose a space, so an id is read with one before it.
std::string GeneratedText::add(int32_t id) {
  const size_t known = tokenizer_.decode(context_).size();
  Ids both = context_;
  both.push_back(id);
  const std::string text = tokenizer_.decode(both);
  if (text.size() > known || says_something(tokenizer_, id)) context_ = {id};
  bytes_ += text.substr(known);
  return pass(false);
}

std::string GeneratedText::end() { return pass(true); }

// The longest end of the text that a stop string might begin with.
size_t GeneratedText::held_back() const {
  size_t most = 0;
  for (const auto& stop : stops_)
    for (size_t n = std::min(stop.size() - 1, bytes_.size()); n > most; --n)
      if (bytes_.ends_with(stop.substr(0, n))) most = n;
  return most;
}

std::string GeneratedText::pass(bool last) {
  if (stopped_) return "";
  size_t end = std::string::npos;
  for (const auto& stop : stops_) end = std::min(end, bytes_.find(stop));
  if (end != std::string::npos) {
    stopped_ = true;
    return whole_characters(std::string_view(bytes_).substr(0, end));
  }
  const size_t keep = last ? 0 : std::max(held_back(), unfinished(bytes_));
  const auto out = whole_characters(std::string_view(bytes_).substr(0, bytes_.size() - keep));
  bytes_.erase(0, bytes_.size() - keep);
  return out;
}

}  // namespace lrnn::text
