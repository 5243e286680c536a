#include "model/import_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"

namespace lrnn::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kLargestText = 32u << 20;  // of config.json or of an index
constexpr size_t kMostFiles = 10000;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Only a name, nothing that leads elsewhere.
bool is_plain(const std::string& name) {
  const std::string end = ".safetensors";
  return name.size() > end.size() && name.ends_with(end) && name[0] != '.' &&
         name.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
}

[[noreturn]] void no_weights(const std::string& folder) {
  bool pickles = false;
  for (const auto& item : fs::directory_iterator(folder)) {
    const std::string end = item.path().extension().string();
    pickles = pickles || end == ".bin" || end == ".pt" || end == ".pth";
  }
  if (!pickles)
    throw Error(cat(folder, " has neither model.safetensors nor model.safetensors.index.json"),
                "these are what `save_pretrained` of transformers writes");
  throw Error(cat("the weights in ", folder, " are pickles, which are programs; lrnn runs none"),
              cat("convert them: python -c \"import glob, torch, safetensors.torch as s; "
                  "s.save_file({k: v.clone() for f in sorted(glob.glob('",
                  folder, "/*.bin')) for k, v in torch.load(f, weights_only=True).items()}, '",
                  folder, "/model.safetensors', {'format': 'pt'})\""));
}

// The names of the tensors by file.
std::map<std::string, std::set<std::string>> read_index(const std::string& path) {
  std::map<std::string, std::set<std::string>> out;
  json root;
  try {
    root = read_json<json>(read_small(path));
  } catch (const BadJson& e) {
    throw Error(cat(path, " cannot be read: ", e.what()));
  }
  if (!root.is_object() || !root.contains("weight_map") || !root["weight_map"].is_object())
    throw Error(cat(path, " has no weight_map from tensors to files"));
  for (const auto& [name, file] : root["weight_map"].items()) {
    if (!file.is_string()) throw Error(cat(path, ": the file of '", name, "' is not a text"));
    const auto text = file.get<std::string>();
    if (!is_plain(text))
      throw Error(cat(path, ": '", text, "' is not the name of a .safetensors file beside it"));
    out[text].insert(name);
  }
  if (out.size() > kMostFiles) throw Error(cat(path, " names ", out.size(), " files"));
  return out;
}

}  // namespace

std::string read_small(const std::string& path) {
  std::error_code failed;
  const auto size = fs::file_size(path, failed);
  if (failed) throw Error(cat("cannot read ", path, ": ", failed.message()));
  if (size > kLargestText)
    throw Error(cat(path, " has ", size, " bytes: it is no text of a model"));
  return read_file(path);
}

PublishedFiles::PublishedFiles(const std::string& folder) {
  const std::string whole = folder + "/model.safetensors", index = whole + ".index.json";
  if (is_file(whole))
    open(whole);
  else if (is_file(index))
    open_index(folder);
  else
    no_weights(folder);
}

void PublishedFiles::open(const std::string& path) {
  auto* file = files_.emplace_back(std::make_unique<SafetensorsFile>(path)).get();
  for (const auto& tensor : file->header().tensors)
    if (!places_.emplace(tensor.name, Place{file, &tensor}).second)
      throw Error(cat("'", tensor.name, "' is in ", path, " and in another file, too"));
}

void PublishedFiles::open_index(const std::string& folder) {
  const std::string index = folder + "/model.safetensors.index.json";
  for (const auto& [name, tensors] : read_index(index)) {
    const std::string path = folder + "/" + name;
    if (!is_file(path)) throw Error(cat(index, " names ", name, ", which is not there"));
    open(path);
    for (const auto& tensor : tensors)
      if (const auto found = places_.find(tensor);
          found == places_.end() || found->second.file != files_.back().get())
        throw Error(cat(index, " says that '", tensor, "' is in ", name, ", and it is not"));
    for (const auto& tensor : files_.back()->header().tensors)
      if (!tensors.contains(tensor.name))
        throw Error(cat(path, " has '", tensor.name, "', which the index does not know"));
  }
}

const StoredTensor* PublishedFiles::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : found->second.tensor;
}

std::vector<std::string> PublishedFiles::names() const {
  std::vector<std::string> out;
  for (const auto& [name, place] : places_) out.push_back(name);
  return out;
}

torch::Tensor PublishedFiles::read(const std::string& name) {
  const Place& place = places_.at(name);
  return place.file->read(*place.tensor);
}

}  // namespace lrnn::model
