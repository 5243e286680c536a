#include "text/sentence_piece.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "text/added_tokens.h"
#include "text/protobuf.h"
#include "text/word_cache.h"

namespace lrnn::text {

SentencePieceAbout about_sentence_piece(std::string_view model, const std::string& path) {
  SentencePieceAbout out;
  Fields all(model);
  const auto inside = [&](std::string_view message, const auto& visit) {
    Fields fields(message);
    while (const auto field = fields.next()) visit(*field);
    if (fields.broken()) throw Error(path + " is no SentencePiece model, or a damaged one");
  };
  while (const auto field = all.next()) {
    if (field->number == 2)
      inside(field->bytes, [&](const Fields::Field& f) {
        if (f.number == 3) out.bpe = f.value == 2;
        if (f.number == 24) out.suffix = f.value;
      });
    if (field->number == 3)
      inside(field->bytes, [&](const Fields::Field& f) {
        if (f.number == 1) out.normalizer = f.bytes;
        if (f.number == 2) out.normalizes = !f.bytes.empty();
        if (f.number == 3) out.prefix = f.value;
        if (f.number == 4) out.drops_spaces = f.value;
        if (f.number == 5) out.escapes = f.value;
      });
  }
  if (all.broken()) throw Error(path + " is no SentencePiece model, or a damaged one");
  return out;
}

namespace {

constexpr std::string_view kBlank = "\u2581";  // how pieces write a space

void check_lossless(const SentencePieceAbout& about, const std::string& path) {
  const std::string why = about.normalizes     ? cat("normalises texts (", about.normalizer, ")")
                          : about.drops_spaces ? "drops extra spaces"
                          : about.suffix       ? "puts spaces behind words"
                          : !about.escapes     ? "does not mark spaces"
                                               : "";
  if (!why.empty())
    throw Error(cat(path, " ", why, ": what it encodes would not come back"),
                "`python -m lrnn prepare` takes every tokenizer of PyPI `tokenizers`");
}

class SentencePiece final : public Tokenizer {
 public:
  SentencePiece(std::string model, const std::string& path) {
    const SentencePieceAbout about = about_sentence_piece(model, path);
    check_lossless(about, path);
    prefix_ = about.prefix;
    // The library puts the space before a text, if at all, before each that it gets. We cut texts,
    // so we put it there ourselves and tell the library not to: of two equal fields the last
    // counts.
    model += std::string("\x1a\x02\x18\x00", 4);
    if (!library_.LoadFromSerializedProto(model).ok())
      throw Error(path + " is no SentencePiece model, or a damaged one");
    pieces_.resize(size_t(library_.GetPieceSize()));
    bytes_.fill(-1);
    cut_at_words_ = cut_at_lines_ = about.bpe;
    for (int32_t id = 0; id < vocabulary(); ++id) add(id);
    if (library_.bos_id() >= 0) bos = library_.bos_id();
    if (library_.eos_id() >= 0) eos = library_.eos_id();
  }

  std::unique_ptr<Encoder> encoder(Reading how) const override;
  int32_t vocabulary() const override { return int32_t(pieces_.size()); }
  std::optional<int32_t> find(std::string_view name) const override {
    const int id = library_.PieceToId(name);
    if (library_.IsUnknown(id) && library_.IdToPiece(id) != name) return {};
    return id;
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    bool first = prefix_;
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocabulary())
        throw Error(cat("the tokenizer has no id ", id),
                    cat("its vocabulary has ", vocabulary(), " pieces, from 0"));
      if (library_.IsControl(id)) continue;
      const std::string& piece = pieces_[size_t(id)];
      out += first && !library_.IsByte(id) && piece.starts_with(' ') ? piece.substr(1) : piece;
      first = false;
    }
    return out;
  }

  // The ids of a piece of text without U+2581 and broken bytes.
  void encode_plain(const std::string& text, Ids& ids) const {
    std::vector<int> found;
    library_.Encode(text, &found).IgnoreError();
    for (const int id : found)
      if (library_.IsUnknown(id)) lose(text);
    ids.insert(ids.end(), found.begin(), found.end());
  }
  void encode_bytes(std::string_view bytes, Ids& ids) const {
    for (const char c : bytes) {
      const int32_t id = bytes_[static_cast<unsigned char>(c)];
      if (id < 0) lose(std::string(bytes));
      ids.push_back(id);
    }
  }
  bool prefix() const { return prefix_; }
  bool cut_at_words() const { return cut_at_words_; }
  bool cut_at_lines() const { return cut_at_lines_; }
  const std::vector<std::pair<std::string, int32_t>>& control() const { return control_; }

 private:
  void add(int32_t id) {
    std::string piece = library_.IdToPiece(id);
    if (library_.IsControl(id)) control_.emplace_back(piece, id);
    if (library_.IsByte(id)) {  // <0x0A>
      const int byte = std::stoi(piece.substr(3, 2), nullptr, 16);
      bytes_[size_t(byte)] = id;
      pieces_[size_t(id)] = std::string(1, char(byte));
      return;
    }
    if (library_.IsUnknown(id)) piece = " \u2047 ";  // as the library prints it
    if (piece.find('\n') != piece.npos) cut_at_lines_ = false;
    std::string out;
    for (size_t at = 0; at < piece.size();) {
      const bool blank = std::string_view(piece).substr(at).starts_with(kBlank);
      // Words are cut where a space follows something else; a piece across such a place would be
      // missed, so then nothing is cut.
      if (blank && !out.empty() && out.back() != ' ') cut_at_words_ = false;
      out += blank ? ' ' : piece[at];
      at += blank ? kBlank.size() : 1;
    }
    pieces_[size_t(id)] = std::move(out);
  }
  [[noreturn]] void lose(const std::string& text) const {
    throw Error(cat("the tokenizer has no piece for something in '", shortened(text), "'"),
                "it has no byte pieces (byte_fallback), so this text would be lost");
  }
  static std::string shortened(const std::string& text) {
    std::string out;
    for (size_t at = 0; at < text.size() && at < 40;) {
      const size_t n = bytes_of_character(std::string_view(text).substr(at));
      out += n == 0 ? "\uFFFD" : text.substr(at, n);
      at += std::max<size_t>(n, 1);
    }
    return out;
  }

  sentencepiece::SentencePieceProcessor library_;
  std::vector<std::string> pieces_;  // by id, as bytes
  std::array<int32_t, 256> bytes_{};
  std::vector<std::pair<std::string, int32_t>> control_;
  bool prefix_ = true, cut_at_words_ = false, cut_at_lines_ = false;
};

class SentencePieceEncoder final : public Encoder {
 public:
  SentencePieceEncoder(const SentencePiece& model, Reading how) : model_(model) {
    if (how.special)
      for (const auto& [name, id] : model.control()) special_.add({.content = name, .id = id});
  }

  void encode(std::string_view text, Ids& ids) override {
    bool first = true;
    const auto plain = [&](std::string_view part) {
      between(part, first && model_.prefix(), ids);
      first = false;
    };
    special_.cut(text, true, plain, [&](int32_t id) { ids.push_back(id); });
  }

 private:
  // A literal U+2581 would come back as a space, and bytes that are not UTF-8 as U+FFFD: both go
  // byte by byte, and the library gets what is between them.
  void between(std::string_view text, bool prefix, Ids& ids) {
    std::string plain = prefix ? " " : "";
    for (size_t at = 0; at < text.size();) {
      const auto rest = text.substr(at);
      const size_t n = bytes_of_character(rest);
      const bool whole = n > 0 && !rest.starts_with(kBlank);
      const size_t size = std::max<size_t>(n, 1);
      if (whole) {
        plain.append(rest.substr(0, size));
      } else {
        words(plain, ids);
        plain.clear();
        model_.encode_bytes(rest.substr(0, size), ids);
      }
      at += size;
    }
    words(plain, ids);
  }

  // One heap for a whole document is slow, and words come again: cut where a space follows another
  // character, and around line ends where no piece has any. No piece reaches across such a place,
  // so the ids are the same.
  void words(const std::string& text, Ids& ids) {
    if (text.empty()) return;
    if (!model_.cut_at_words()) return model_.encode_plain(text, ids);
    const char* ends = model_.cut_at_lines() ? " \n" : " ";
    for (size_t at = 0; at < text.size();) {
      size_t end = text.find_first_not_of(' ', at);
      if (end != text.npos && text[end] == '\n' && model_.cut_at_lines())
        end = end > at ? end : text.find_first_not_of('\n', end);
      else if (end != text.npos)
        end = text.find_first_of(ends, end);
      end = std::min(end, text.size());
      word(std::string_view(text).substr(at, end - at), ids);
      at = end;
    }
  }
  void word(std::string_view word, Ids& ids) {
    if (const auto known = cache_.find(word); known.data()) {
      ids.insert(ids.end(), known.begin(), known.end());
      return;
    }
    const size_t before = ids.size();
    model_.encode_plain(std::string(word), ids);
    cache_.add(word, {ids.data() + before, ids.size() - before});
  }

  const SentencePiece& model_;
  AddedTokens special_;
  WordCache cache_;
};

std::unique_ptr<Encoder> SentencePiece::encoder(Reading how) const {
  return std::make_unique<SentencePieceEncoder>(*this, how);
}

}  // namespace

std::unique_ptr<Tokenizer> read_sentence_piece(std::string model, const std::string& path) {
  return std::make_unique<SentencePiece>(std::move(model), path);
}

}  // namespace lrnn::text
