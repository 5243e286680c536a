#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace lrnn::experiments {

// What a language model's run knows of texts: where its tokenizer is, and the tokens that its
// documents begin and end with.
struct TextRun {
  std::string tokenizer;  // a folder
  std::optional<int32_t> bos, eos;
  bool trained = false;  // here, on data that say so

  // Where neither data nor an imported config said it, the tokenizer knows.
  void ask(const text::Tokenizer& tokenizer);
};

// Of a run, or of a checkpoint in one. An Error when it is no language model.
TextRun text_run(const std::string& folder);

}  // namespace lrnn::experiments
