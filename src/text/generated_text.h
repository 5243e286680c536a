#pragma once
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace lrnn::text {

// The text of ids that come one by one, ready to be printed: whole UTF-8 characters only (bytes
// that are none become U+FFFD), and nothing from a stop string on, across whatever tokens it lies.
class GeneratedText {
 public:
  // What comes next continues a text that ends with these ids; controls among them say nothing.
  GeneratedText(const Tokenizer& tokenizer, std::span<const int32_t> before,
                std::vector<std::string> stops);

  std::string add(int32_t id);  // what can be printed now
  std::string end();            // what was held back, when nothing more comes
  bool stopped() const { return stopped_; }

 private:
  std::string pass(bool last);
  size_t held_back() const;

  const Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  Ids context_;        // the last id that says something, if there is one
  std::string bytes_;  // not printed yet
  bool stopped_ = false;
};

// The text with U+FFFD in place of what is not UTF-8.
std::string whole_characters(std::string_view bytes);

}  // namespace lrnn::text
