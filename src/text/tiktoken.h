#pragma once
#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace lrnn::text {

// `.tiktoken`: a line per piece, its bytes in base64 and its rank, which is its id. Words are cut
// as GPT-2 does; `path` is only named.
std::unique_ptr<Tokenizer> read_tiktoken(const std::string& text, const std::string& path);

}  // namespace lrnn::text
