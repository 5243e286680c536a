#include "text/split.h"

#include <string>

#include "text/unicode.h"

namespace lrnn::text {
namespace {

bool is_line_end(const Character& c) { return c.point == '\r' || c.point == '\n'; }

// A place in a text, and the steps of a pattern: each returns where the match ends, or the place
// itself where nothing matches.
class Matcher {
 public:
  explicit Matcher(std::string_view text) : text_(text) {}

  // 's|'t|'re|'ve|'m|'ll|'d, also in capitals; the long s is an s then, as Unicode folds it.
  size_t contraction(size_t at, bool any_case) const {
    if (text_[at] != '\'' || at + 1 == text_.size()) return at;
    const auto letter = [&](size_t i) {
      const char c = i < text_.size() ? text_[i] : '\0';
      return any_case && c >= 'A' && c <= 'Z' ? char(c + ('a' - 'A')) : c;
    };
    const char a = letter(at + 1), b = letter(at + 2);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
    if (((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l')) return at + 3;
    return any_case && text_.substr(at + 1).starts_with("\u017F") ? at + 3 : at;
  }

  // [class]{1,most}
  size_t run(size_t at, int of, size_t most = -1) const {
    for (; at < text_.size() && most > 0; --most) {
      const auto c = get(at);
      if (!c.is(of)) break;
      at += c.bytes;
    }
    return at;
  }
  // [^\s\p{L}\p{N}]+
  size_t others(size_t at) const {
    while (at < text_.size()) {
      const auto c = get(at);
      if (c.is(kLetter | kNumber | kSpace)) break;
      at += c.bytes;
    }
    return at;
  }
  // \s+(?!\S)|\s+ of white space that begins here: all of it but the last where more text follows.
  size_t spaces(size_t at) const {
    size_t end = at, last = at;
    while (end < text_.size()) {
      const auto c = get(end);
      if (!c.is(kSpace)) break;
      last = end, end += c.bytes;
    }
    return end == text_.size() || last == at ? end : last;
  }
  // \s*[\r\n]+
  size_t lines(size_t at) const {
    size_t end = at;
    for (size_t i = at; i < text_.size();) {
      const auto c = get(i);
      if (!c.is(kSpace)) break;
      i += c.bytes;
      if (is_line_end(c)) end = i;
    }
    return end;
  }
  size_t line_ends(size_t at) const {
    while (at < text_.size() && (text_[at] == '\r' || text_[at] == '\n')) ++at;
    return at;
  }
  Character get(size_t at) const {
    const auto byte = static_cast<unsigned char>(text_[at]);
    return byte < 0x80 ? Character{byte, 1, table_[byte]} : character_at(text_, at);
  }
  size_t size() const { return text_.size(); }

 private:
  std::string_view text_;
  const uint8_t* table_ = class_table();
};

size_t gpt2(const Matcher& m, size_t at) {
  if (const size_t end = m.contraction(at, false); end > at) return end;
  const auto first = m.get(at);
  const size_t next = first.point == ' ' ? at + 1 : at;
  if (next < m.size()) {
    const auto c = m.get(next);
    if (c.is(kLetter)) return m.run(next, kLetter);
    if (c.is(kNumber)) return m.run(next, kNumber);
    if (!c.is(kSpace)) return m.others(next);
  }
  return m.spaces(at);
}

size_t cl100k(const Matcher& m, size_t at, size_t digits) {
  if (const size_t end = m.contraction(at, true); end > at) return end;
  const auto first = m.get(at);
  const size_t after = at + first.bytes;
  if (first.is(kLetter)) return m.run(at, kLetter);
  if (!is_line_end(first) && !first.is(kNumber) && after < m.size() && m.get(after).is(kLetter))
    return m.run(after, kLetter);
  if (first.is(kNumber)) return m.run(at, kNumber, digits);
  const size_t mark = first.point == ' ' ? after : at;
  if (const size_t end = m.others(mark); end > mark) return m.line_ends(end);
  if (const size_t end = m.lines(at); end > at) return end;
  return m.spaces(at);
}

size_t digits(const Matcher& m, size_t at) {
  const bool number = m.get(at).is(kNumeric);
  while (at < m.size() && m.get(at).is(kNumeric) == number) at += m.get(at).bytes;
  return at;
}

size_t each_digit(const Matcher& m, size_t at) {
  const auto first = m.get(at);
  return first.is(kNumeric) ? at + first.bytes : digits(m, at);
}

size_t match(Split split, const Matcher& m, size_t at) {
  switch (split) {
    case Split::kGpt2: return gpt2(m, at);
    case Split::kCl100k: return cl100k(m, at, 3);
    case Split::kQwen: return cl100k(m, at, 1);
    case Split::kDigits: return digits(m, at);
    case Split::kEachDigit: return each_digit(m, at);
    case Split::kPrefixSpace: break;
  }
  return m.size();
}

void cut_from(std::string_view text, const Split* split, const Split* end, const Word& word) {
  if (split == end) return word(text);
  if (*split == Split::kPrefixSpace) {
    if (text.starts_with(' ')) return cut_from(text, split + 1, end, word);
    return cut_from(" " + std::string(text), split + 1, end, word);
  }
  const Matcher matcher(text);
  for (size_t at = 0; at < text.size();) {
    const size_t stop = match(*split, matcher, at);
    cut_from(text.substr(at, stop - at), split + 1, end, word);
    at = stop;
  }
}

struct Pattern {
  std::string_view text;
  Split split;
};

constexpr Pattern kPatterns[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Split::kGpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Split::kGpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Split::kCl100k},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     Split::kQwen},
};

}  // namespace

const Split* split_of_pattern(std::string_view pattern) {
  for (const auto& known : kPatterns)
    if (known.text == pattern) return &known.split;
  return nullptr;
}

void cut(std::string_view text, const std::vector<Split>& splits, const Word& word) {
  if (!text.empty()) cut_from(text, splits.data(), splits.data() + splits.size(), word);
}

}  // namespace lrnn::text
