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

}  // namespace lrnn::model
