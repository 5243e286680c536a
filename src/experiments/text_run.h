#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace lrnn::experiments {

// What a language model's run knows of texts: where its tokenizer is, and the tokens that its
// documents begin and end with.
struct TextRun {
  std::string tokenizer;  // a folder
  std::optional<int32_t> bos, eos;
};

// Of a run, or of a checkpoint in one. An Error when it is no language model.
TextRun text_run(const std::string& folder);

}  // namespace lrnn::experiments
