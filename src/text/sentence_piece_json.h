#pragma once
#include <optional>
#include <string>

namespace lrnn::text {

// A SentencePiece model as the files that PyPI `tokenizers` and `transformers` read; what these
// make of a tokenizer.model alone leaves out the space before a text that begins with one.
struct TokenizerFiles {
  std::string tokenizer, config;  // tokenizer.json, tokenizer_config.json
};

// Nothing of a unigram model, whose ties other programs resolve in their own way, and of one that
// changes texts. `model`: the bytes of a tokenizer.model; `path` is only named.
std::optional<TokenizerFiles> tokenizer_files_of(const std::string& model, const std::string& path);

}  // namespace lrnn::text
