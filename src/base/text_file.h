#pragma once
#include <cstdint>
#include <string>

namespace lrnn {

// What a caller knows about a file that somebody named.
struct TextFile {
  std::string hint;               // what such a file is, and where it may come from
  int64_t most_bytes = 16 << 20;  // larger ones are mistakes
};

// The whole of a text file (or of a pipe), or an Error that says why it cannot be one: there is
// none, it is a folder, it may not be read, it is empty, it is too large, it is not text.
std::string read_text_file(const std::string& path, const TextFile& about);

}  // namespace lrnn
