#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lrnn::text {

// A token that is cut out of a text before anything else looks at it, as tokenizer.json lists them.
struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false, single_word = false, lstrip = false, rstrip = false;
};

// Looks for added tokens from left to right, the longest first.
class AddedTokens {
 public:
  void add(AddedToken token);
  bool empty() const { return tokens_.empty(); }

  using Plain = std::function<void(std::string_view)>;
  using Token = std::function<void(int32_t)>;
  // Calls `plain` for what lies between tokens and `token` for each of them, in order. Special
  // tokens that are not wanted are plain text, and nothing is looked for inside them.
  void cut(std::string_view text, bool special, const Plain& plain, const Token& token) const;

 private:
  const AddedToken* longest(std::string_view text) const;

  std::vector<AddedToken> tokens_;
  std::array<std::vector<size_t>, 256> by_first_;  // longest first
};

}  // namespace lrnn::text
