#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

// SentencePiece models by its own library.
namespace lrnn::text {

// The bytes of a `tokenizer.model`; `path` is only named. Models that change texts before encoding
// them are refused: what they drop would not come back.
std::unique_ptr<Tokenizer> read_sentence_piece(std::string model, const std::string& path);

// What a model says about itself. `normalizer` points into its bytes.
struct SentencePieceAbout {
  bool bpe = false, suffix = false, prefix = true, drops_spaces = true, escapes = true;
  std::string_view normalizer;
  bool normalizes = false;
};
SentencePieceAbout about_sentence_piece(std::string_view model, const std::string& path);

struct SentencePieceTraining {
  int32_t vocabulary = 32000;
  std::string kind = "bpe";  // or "unigram"
};

// The bytes of a new model: the same for the same lines, with byte pieces, digits one by one and
// spaces kept, as Mistral's. `next` gives line after line, without its end.
using NextLine = std::function<bool(std::string& line)>;
std::string train_sentence_piece(const SentencePieceTraining& how, const NextLine& next);

}  // namespace lrnn::text
