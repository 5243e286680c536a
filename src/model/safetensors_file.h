#pragma once
#include <fstream>

#include "model/safetensors.h"

namespace lrnn::model {

// A safetensors file, opened: its header is read and checked, its tensors are read one at a time.
// Anything wrong with it is an Error that names the file.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  const std::string& text() const { return text_; }  // of the header, as it stands in the file
  torch::Tensor read(const StoredTensor& tensor);

 private:
  void read(void* to, uint64_t size);

  std::string path_, text_;
  std::ifstream in_;
  uint64_t data_ = 0;  // where the data begins
  SafetensorsHeader header_;
};

// A file that is not what it should be.
[[noreturn]] void damaged_safetensors(const std::string& path, const std::string& what);

}  // namespace lrnn::model
