#pragma once
#include <functional>
#include <string_view>
#include <vector>

// How a text is cut into the words inside which byte-level BPE merges: the regular expressions of
// published tokenizers, matched by hand.
namespace lrnn::text {

enum class Split {
  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kGpt2,
  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
  // |\s*[\r\n]+|\s+(?!\S)|\s+                                        (GPT-4, Llama 3)
  kCl100k,
  kQwen,         // the same with \p{N}
  kDigits,       // runs of digits, and what is between them
  kEachDigit,    // digits one by one, and what is between them
  kPrefixSpace,  // no cut: a space before a piece that begins with none
};

// The split that a pattern of a tokenizer.json stands for; nothing where it is not one of ours.
const Split* split_of_pattern(std::string_view pattern);

using Word = std::function<void(std::string_view)>;

// Cuts the text by the first split, the pieces by the second, and so on.
void cut(std::string_view text, const std::vector<Split>& splits, const Word& word);

}  // namespace lrnn::text
