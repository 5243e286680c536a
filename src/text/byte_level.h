#pragma once
#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/added_tokens.h"
#include "text/split.h"
#include "text/tokenizer.h"

// Byte-level BPE: a text is cut into words (split.h), a word into its bytes, and the adjacent pair
// of lowest rank is merged, the leftmost first, until none can be.
namespace lrnn::text {

struct ByteLevel {
  struct Merge {
    int32_t rank, id;
  };

  std::vector<std::string> pieces;     // by id, as bytes; empty where there is none
  std::array<int32_t, 256> letters{};  // the id of each byte; -1 where there is none
  std::unordered_map<uint64_t, Merge> merges;
  std::unordered_map<std::string, int32_t> whole;  // words that are taken whole before any merge
  int32_t unknown = -1;                            // for bytes without a piece
  bool fuse_unknown = false;                       // ... one for several in a row
  std::vector<Split> splits;
  AddedTokens raw, normalized;  // the second are looked for in what the first leave

  static uint64_t pair(int32_t left, int32_t right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  }
};

std::unique_ptr<Tokenizer> byte_level_tokenizer(ByteLevel model);

// Byte b as the character that tokenizer.json writes for it, and back: the printable ones stand for
// themselves, the other 68 are U+0100, U+0101, … in their order.
const std::array<std::string, 256>& byte_letters();
// The bytes of a piece; the piece itself where a character of it stands for no byte.
std::string bytes_of_piece(const std::string& piece);

// ---------------------------------------------------------------------------------- its files

// `tokenizer.json` of a byte-level BPE, as PyPI `tokenizers` writes it; every other kind is refused
// by name. `path` is only named. Cutting a text short or padding it, which such a file may ask for,
// is left to those who make batches.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::string& text, const std::string& path);

// bos_token and eos_token of the tokenizer_config.json beside it.
void read_tokenizer_config(const std::string& text, const std::string& path, Tokenizer& tokenizer);

// `.tiktoken`: a line per piece, its bytes in base64 and its rank, which is its id. Words are cut
// as GPT-2 does; `path` is only named.
std::unique_ptr<Tokenizer> read_tiktoken(const std::string& text, const std::string& path);

}  // namespace lrnn::text
