#pragma once
#include <string>
#include <vector>

#include "tasks/letters.h"

namespace lrnn::cli {

// Words on standard input, one per line: characters when every symbol is one, otherwise symbols
// separated by spaces. Elements of a group may have spaces inside their brackets: (1 2)(3 4). A
// word is handed out in pieces, so that its length does not matter.
class WordReader {
 public:
  explicit WordReader(const tasks::Task& task);

  // The next tokens, at most `most`. `ended`: the word is complete. False at the end of the input.
  bool read(std::vector<int64_t>& tokens, size_t most, bool& ended);
  const tasks::Letters& letters() const { return letters_; }
  // Whether more input is there already: if not, answers should not wait for it.
  bool more_is_waiting();

 private:
  int next();  // a byte, or -1
  bool symbol(std::string& text, bool& end_of_line);
  int64_t token(const std::string& text) const;
  [[noreturn]] void unknown(const std::string& text) const;

  tasks::Letters letters_;
  bool characters_, in_line_ = false;
  int64_t line_ = 1;
  std::vector<char> buffer_;
  size_t at_ = 0, filled_ = 0;
};

}  // namespace lrnn::cli
