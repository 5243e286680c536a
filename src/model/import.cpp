#include "model/import.h"

#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/free_memory.h"
#include "base/json.h"
#include "model/checkpoint.h"
#include "model/import_files.h"
#include "model/names.h"

namespace lrnn::model {
namespace {

using Json = nlohmann::ordered_json;
using torch::Tensor;

Json read_config(const std::string& path) {
  try {
    return read_json<Json>(read_small(path), 8);
  } catch (const BadJson& e) {
    throw Error(cat(path, " cannot be read: ", e.what()));
  }
}

// The first of a list that may be as long as a hostile file wants.
std::string listed(const std::vector<std::string>& lines) {
  constexpr size_t kMost = 40;
  std::string out;
  for (size_t i = 0; i < std::min(lines.size(), kMost); ++i) out += "\n  " + lines[i];
  if (lines.size() > kMost) out += cat("\n  and ", lines.size() - kMost, " more");
  return out;
}

// How each tensor of the model is made of those in the files.
std::map<std::string, Recipe> recipes(const std::map<std::string, Tensor>& wanted,
                                      const PublishedNames& names, const PublishedFiles& files,
                                      bool tied, const std::string& folder) {
  std::map<std::string, Recipe> out;
  std::vector<std::string> wrong;
  std::set<std::string> used;
  for (const auto& [name, tensor] : wanted) {
    const std::string theirs = names(name);
    const Recipe recipe = find_recipe(files, theirs, tensor.sizes().vec());
    for (const auto& piece : recipe.pieces) used.insert(piece.name);
    if (recipe.pieces.empty())
      wrong.push_back(cat(theirs, " ", tensor.sizes(), " is missing"));
    else if (recipe.shape != tensor.sizes().vec())
      wrong.push_back(
          cat(theirs, " is ", at::IntArrayRef(recipe.shape), ", the config says ", tensor.sizes()));
    for (const auto& piece : recipe.pieces)
      if (const auto dtype = files.find(piece.name)->dtype;
          dtype == torch::kFloat64 || dtype == torch::kInt64)
        wrong.push_back(
            cat(piece.name, " has the dtype ", dtype_name(dtype), ", which float32 cannot hold"));
    out.emplace(name, recipe);
  }
  for (const auto& name : files.names())
    if (!used.contains(name) && !is_unused(name) && !(tied && name == "lm_head.weight"))
      wrong.push_back(cat(name, " ", at::IntArrayRef(files.find(name)->shape), " is unexpected"));
  if (!wrong.empty())
    throw Error(cat("the weights in ", folder, " do not fit its config.json:", listed(wrong)));
  return out;
}

void need_memory(const Model& shapes, const std::string& folder) {
  const double bytes = 4.0 * double(shapes.parameter_count()), free = double(free_memory());
  if (bytes > free)
    throw Error(cat("the model in ", folder, " takes ", int64_t(bytes / 1e6),
                    " MB in float32, and ", int64_t(free / 1e6), " MB are free"));
}

void note_dtypes(Origin& origin, const std::map<std::string, Recipe>& made,
                 const PublishedNames& names, const PublishedFiles& files) {
  std::map<std::string, int64_t> numbers;
  for (const auto& [name, recipe] : made)
    numbers[dtype_name(files.find(recipe.pieces[0].name)->dtype)] += 1;
  for (const auto& [dtype, count] : numbers)
    if (!numbers.contains(origin.dtype) || count > numbers[origin.dtype]) origin.dtype = dtype;
  for (const auto& [name, recipe] : made)
    if (const std::string dtype = dtype_name(files.find(recipe.pieces[0].name)->dtype);
        dtype != origin.dtype)
      origin.others[names(name)] = dtype;
}

}  // namespace

bool is_published(const std::string& folder) {
  namespace fs = std::filesystem;
  return fs::exists(folder + "/config.json") && !fs::exists(folder + "/config.yaml") &&
         !fs::exists(folder + "/manifest.json");
}

Imported import_model(const std::string& folder) {
  if (!std::filesystem::exists(folder + "/config.json"))
    throw Error(cat(folder, " has no config.json"),
                "give the folder that `save_pretrained` of transformers wrote");
  const std::string source = folder + "/config.json";
  Imported out;
  const Published published = published_model(read_config(source), source);
  out.origin.config = published.json;
  const PublishedNames names = names_of(published.type, out.origin.config);
  const auto shapes = Model::shapes(published.config, published.vocabulary);
  PublishedFiles files(folder);
  const auto made = recipes(tensors_of(*shapes), names, files, published.config.tied, folder);
  need_memory(*shapes, folder);
  out.model = Model::blank(published.config, published.vocabulary);
  const torch::NoGradGuard no_grad;
  for (auto [name, tensor] : tensors_of(*out.model)) tensor.copy_(assemble(files, made.at(name)));
  if (published.config.tied && files.find("lm_head.weight")) {
    const Tensor head = files.read("lm_head.weight");
    const Tensor table = tensors_of(*out.model).at("model.embeddings.weight");
    if (!torch::equal(head.to(table.scalar_type()), table))
      throw Error(cat(source,
                      ": tie_word_embeddings is true, and lm_head.weight is not the "
                      "embedding"));
    out.origin.stored_head = true;
  }
  note_dtypes(out.origin, made, names, files);
  return out;
}

}  // namespace lrnn::model
