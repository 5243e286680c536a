#pragma once
#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace lrnn::text {

// `tokenizer.json` of a byte-level BPE, as PyPI `tokenizers` writes it; every other kind is refused
// by name. `path` is only named. Cutting a text short or padding it, which such a file may ask for,
// is left to those who make batches.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::string& text, const std::string& path);

// bos_token and eos_token of the tokenizer_config.json beside it.
void read_tokenizer_config(const std::string& text, const std::string& path, Tokenizer& tokenizer);

}  // namespace lrnn::text
