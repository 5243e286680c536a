#include "text/tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text_file.h"
#include "text/tiktoken.h"
#include "text/tokenizer_json.h"

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
  const fs::path file = fs::is_directory(path) ? file_in(path) : fs::path(path);
  const std::string name = file.string();
  if (file.extension() != ".json" && file.extension() != ".tiktoken")
    throw Error(cat(name, " is no tokenizer that is known here"), kAbout.hint);
  const std::string text = read_text_file(name, kAbout);
  const bool json = file.extension() == ".json";
  auto out = json ? read_tokenizer_json(text, name) : read_tiktoken(text, name);
  out->files = {name};
  out->sha256 = sha256(text);
  const auto config = (file.parent_path() / "tokenizer_config.json").string();
  if (json && fs::exists(config)) {
    read_tokenizer_config(read_text_file(config, kAbout), config, *out);
    out->files.push_back(config);
  }
  return out;
}

}  // namespace lrnn::text
