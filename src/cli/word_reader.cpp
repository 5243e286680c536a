#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "cli/run.h"

namespace lrnn::cli {
namespace {

constexpr size_t kLongestSymbol = 4096;  // a file of another kind may have no spaces at all

}  // namespace

WordReader::WordReader(const tasks::Task& task)
    : letters_(task), characters_(letters_.characters()), buffer_(1 << 16) {}

int WordReader::next() {
  if (at_ == filled_) {
    ssize_t n;
    do n = ::read(0, buffer_.data(), buffer_.size());
    while (n < 0 && errno == EINTR);
    if (n < 0)
      throw Error(cat("the words cannot be read from standard input: ", std::strerror(errno)));
    if (n == 0) return -1;
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
  int depth = 0;  // of a group element's brackets
  for (int c = next(); c >= 0; c = next()) {
    in_line_ = true;
    if (c == '\n') {
      if (!text.empty()) return --at_, true;
      return end_of_line = true, false;
    }
    const bool space = c == ' ' || c == '\t' || c == '\r';
    if (space && depth == 0 && !characters_) {
      if (text.empty()) continue;
      return true;
    }
    if (characters_ && text.empty() && space && letters_.find(std::string(1, char(c))) < 0)
      continue;  // "1 1" reads like "11"
    text += space && depth > 0 ? ' ' : char(c);
    const size_t bytes = bytes_of_character(static_cast<unsigned char>(text[0]));
    bool whole = text.size() == std::max<size_t>(bytes, 1);  // what begins no character is a symbol
    if (letters_.of_a_group() && (c == '(' || c == '[')) whole = ++depth == 0;
    if (letters_.of_a_group() && (c == ')' || c == ']')) whole = --depth <= 0;
    if ((characters_ && whole && depth <= 0) || text.size() >= kLongestSymbol) return true;
  }
  return !text.empty();
}

void WordReader::unknown(const std::string& text) const {
  std::string hint = "its symbols are " + letters_.some();
  if (!characters_) hint += ", separated by spaces";
  if (letters_.of_a_group()) hint += "; `lrnn run RUN --key` lists all ways to write them";
  const size_t shown = 40;
  throw Error(cat("line ", line_, ": '", text.substr(0, shown), text.size() > shown ? "…" : "",
                  "' is not a symbol of this model"),
              hint);
}

int64_t WordReader::token(const std::string& text) const {
  int64_t found = -1;
  try {
    found = letters_.find(text);
  } catch (const Error& e) {
    throw Error(cat("line ", line_, ": ", e.what()),
                e.hint() + "; spaces stand between symbols, as in (12) (23)");
  }
  if (found < 0) unknown(text);
  return found;
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
