#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run.h"

namespace lrnn::experiments {

// What a language model's run knows of texts: where its tokenizer is, and the tokens that its
// documents begin and end with.
struct TextRun {
  std::string tokenizer;  // a folder
  std::optional<int32_t> bos, eos;
  bool trained = false;                 // here, on data that say so
  std::optional<int64_t> longest = {};  // tokens that an imported model was made for

  // Where neither data nor an imported config said it: what the tokenizer knows.
  void or_else(std::optional<int32_t> first, std::optional<int32_t> last);
};

// Of a run, or of a checkpoint in one. An Error when it is no language model.
TextRun text_run(const std::string& folder);

// The folders that the task of a config reads, as named there: they need not be there. None where
// the task reads none.
std::vector<std::string> data_folders(const RunConfig& config);

}  // namespace lrnn::experiments
