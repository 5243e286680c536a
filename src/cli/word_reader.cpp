#include "cli/word_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace lrnn::cli {
namespace {

// Bytes of a UTF-8 character, by its first.
size_t utf8_bytes(unsigned char first) {
  return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

}  // namespace

WordReader::WordReader(const tasks::Task& task) : buffer_(1 << 16) {
  for (const int64_t t : task.letters()) {
    const auto word = task.word(t);
    tokens_.emplace(word, t);
    symbols_.push_back(word);
    characters_ &= !word.empty() && utf8_bytes(static_cast<unsigned char>(word[0])) == word.size();
  }
}

int WordReader::next() {
  if (at_ == filled_) {
    ssize_t n;
    do n = ::read(0, buffer_.data(), buffer_.size());
    while (n < 0 && errno == EINTR);
    if (n <= 0) return -1;
    at_ = 0, filled_ = size_t(n);
  }
  return static_cast<unsigned char>(buffer_[at_++]);
}

bool WordReader::more_is_waiting() {
  if (at_ < filled_) return true;
  pollfd in{0, POLLIN, 0};
  return ::poll(&in, 1, 0) == 1;
}

// The next symbol; false at the end of the line (`end_of_line`) or of the input.
bool WordReader::symbol(std::string& text, bool& end_of_line) {
  text.clear();
  end_of_line = false;
  for (int c = next(); c >= 0; c = next()) {
    in_line_ = true;
    if (c == '\n' || (!characters_ && (c == ' ' || c == '\t' || c == '\r'))) {
      if (c != '\n' && text.empty()) continue;
      if (c == '\n' && !text.empty()) return --at_, true;
      if (c == '\n') return end_of_line = true, false;
      return true;
    }
    if (characters_ && text.empty() && (c == '\r' || c == ' ') &&
        !tokens_.contains(std::string(1, char(c))))
      continue;  // "1 1" reads like "11"
    text += char(c);
    if (characters_ && text.size() == utf8_bytes(static_cast<unsigned char>(text[0]))) return true;
  }
  return !text.empty();
}

int64_t WordReader::token(const std::string& text) const {
  if (const auto at = tokens_.find(text); at != tokens_.end()) return at->second;
  std::string known;
  for (const auto& word : symbols_) {
    if (known.size() < 60) {
      known += " " + word;
      continue;
    }
    known += " …";
    break;
  }
  throw Error(cat("line ", line_, ": '", text.substr(0, 40), "' is not a symbol of this model"),
              cat("its symbols are", known, characters_ ? "" : ", separated by spaces"));
}

bool WordReader::read(std::vector<int64_t>& tokens, size_t most, bool& ended) {
  tokens.clear();
  ended = false;
  std::string text;
  while (tokens.size() < most) {
    bool end_of_line = false;
    if (symbol(text, end_of_line)) {
      tokens.push_back(token(text));
      continue;
    }
    ended = end_of_line || in_line_;
    if (ended) ++line_;
    in_line_ = false;
    return ended;
  }
  return true;
}

}  // namespace lrnn::cli
