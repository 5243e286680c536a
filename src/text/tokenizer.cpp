#include "text/tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "text/byte_level.h"
#include "text/sentence_piece.h"

namespace lrnn::text {
namespace {

namespace fs = std::filesystem;

const TextFile kAbout{.hint =
                          "a tokenizer is tokenizer.model, tokenizer.json, *.tiktoken, or a "
                          "folder with one of them",
                      .most_bytes = int64_t{256} << 20};

// The tokenizer's file in a folder.
fs::path file_in(const fs::path& folder) {
  for (const char* name : {"tokenizer.model", "tokenizer.json"})
    if (fs::exists(folder / name)) return folder / name;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".tiktoken") found.push_back(entry.path());
  if (found.size() != 1)
    throw Error(cat("the folder ", folder.string(), " has ",
                    found.empty() ? "no tokenizer" : "several .tiktoken files"),
                kAbout.hint);
  return found[0];
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path) {
  if (!fs::exists(path)) throw Error(cat("there is no file or folder ", path), kAbout.hint);
  const fs::path file = fs::is_directory(path) ? file_in(path) : fs::path(path);
  const std::string name = file.string();
  const auto kind = file.extension();
  const bool json = kind == ".json", ranks = kind == ".tiktoken";
  // mistral-common names its models tokenizer.model.v1, .v2, …
  const bool model = file.filename().string().find(".model") != std::string::npos;
  if (!json && !ranks && !model)
    throw Error(cat(name, " is no tokenizer that is known here"), kAbout.hint);
  if (model && !fs::is_regular_file(file)) throw Error("there is no file " + name, kAbout.hint);
  const std::string text = model ? read_file(name) : read_text_file(name, kAbout);
  auto out = json    ? read_tokenizer_json(text, name)
             : ranks ? read_tiktoken(text, name)
                     : read_sentence_piece(text, name);
  out->files = {name};
  out->sha256 = sha256(text);
  const auto config = (file.parent_path() / "tokenizer_config.json").string();
  if (!ranks && fs::exists(config)) {
    if (json) read_tokenizer_config(read_text_file(config, kAbout), config, *out);
    out->files.push_back(config);
  }
  return out;
}

}  // namespace lrnn::text
