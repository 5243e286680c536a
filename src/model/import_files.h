#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/safetensors_file.h"

namespace lrnn::model {

// The tensors of a published folder, in one file or in several. Opening reads the headers alone.
class PublishedFiles {
 public:
  explicit PublishedFiles(const std::string& folder);

  // Null where there is none of that name.
  const StoredTensor* find(const std::string& name) const;
  std::vector<std::string> names() const;
  torch::Tensor read(const std::string& name);

 private:
  struct Place {
    SafetensorsFile* file;
    const StoredTensor* tensor;
  };
  void open(const std::string& path);
  void open_index(const std::string& folder);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Place> places_;
};

// JSON of a published folder as text; a file that is too large for one of its kind is refused.
std::string read_small(const std::string& path);

// How a tensor of today's layout is made of those in a file: almost always it is there as it is.
// Files of earlier versions have some of them in pieces, or several in one.
struct Recipe {
  struct Piece {
    std::string name;
    int64_t row = 0, rows = 0;  // of the first dimension
  };
  std::vector<Piece> pieces;  // end to end; none: it is missing
  std::vector<int64_t> shape;
};

// `shape` is the one that the model has: where a file has twice as many rows, they are two tensors.
Recipe find_recipe(const PublishedFiles& files, const std::string& name,
                   const std::vector<int64_t>& shape);
torch::Tensor assemble(PublishedFiles& files, const Recipe& recipe);

// Tensors that no model reads: of unused convolutions, and frequencies that are computed.
bool is_unused(const std::string& name);

}  // namespace lrnn::model
