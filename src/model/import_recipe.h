#pragma once
#include "model/import_files.h"

namespace lrnn::model {

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
