#include "text/byte_level.h"

#include <charconv>

#include "base/error.h"

namespace lrnn::text {
namespace {

constexpr int32_t kMostIds = 1 << 22;  // larger numbers are mistakes

bool read_base64(std::string_view text, std::string& out) {
  static constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.empty() || text.size() % 4 != 0) return false;
  while (text.ends_with('=')) text.remove_suffix(1);
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const auto value = letters.find(c);
    if (value == std::string_view::npos) return false;
    bits = bits << 6 | uint32_t(value);
    held += 6;
    if (held >= 8) out += char(bits >> (held -= 8));
  }
  return !out.empty();
}

// Every way to make a piece of two others: the pair is merged by the rank of what it makes.
void add_merges(ByteLevel& model) {
  const auto id = [&](std::string_view part) {
    const auto found = model.whole.find(std::string(part));
    return found == model.whole.end() ? -1 : found->second;
  };
  for (const auto& [piece, rank] : model.whole)
    for (size_t n = 1; n < piece.size(); ++n) {
      const int32_t left = id(std::string_view(piece).substr(0, n));
      const int32_t right = id(std::string_view(piece).substr(n));
      if (left >= 0 && right >= 0) model.merges[ByteLevel::pair(left, right)] = {rank, rank};
    }
}

}  // namespace

std::unique_ptr<Tokenizer> read_tiktoken(const std::string& text, const std::string& path) {
  ByteLevel model;
  model.letters.fill(-1);
  model.splits = {Split::kGpt2};
  size_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view row = std::string_view(text).substr(at, end - at);
    at = end + 1, ++line;
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row.empty()) continue;
    const size_t blank = row.find(' ');
    std::string piece;
    int32_t rank = -1;
    const char* last = row.data() + row.size();
    const bool good = blank != row.npos && read_base64(row.substr(0, blank), piece) &&
                      std::from_chars(row.data() + blank + 1, last, rank).ptr == last &&
                      rank >= 0 && rank < kMostIds;
    if (!good)
      throw Error(cat(path, ", line ", line, ": this is no piece in base64 and its rank"),
                  "a line of such a file looks like `IHRoZQ== 262`");
    if (size_t(rank) >= model.pieces.size()) model.pieces.resize(size_t(rank) + 1);
    if (!model.pieces[size_t(rank)].empty() || !model.whole.emplace(piece, rank).second)
      throw Error(cat(path, ", line ", line, ": the rank ", rank, " or its piece comes twice"));
    if (piece.size() == 1) model.letters[static_cast<unsigned char>(piece[0])] = rank;
    model.pieces[size_t(rank)] = std::move(piece);
  }
  if (model.pieces.empty()) throw Error(cat(path, " has no pieces"));
  add_merges(model);
  auto out = byte_level_tokenizer(std::move(model));
  out->open_ended = true;  // <|endoftext|> and its kind are not in the file
  return out;
}

}  // namespace lrnn::text
