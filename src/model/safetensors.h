#pragma once
#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// The header of a safetensors file, to and from text. See checkpoint.h for the format.
namespace lrnn::model {

struct StoredTensor {
  std::string name;
  torch::Dtype dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes from the start of the data
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their data, which has no holes
  std::map<std::string, std::string> metadata;
};

// JSON, padded so that the data behind it is aligned.
std::string print_header(const SafetensorsHeader& header);
// Everything is checked: the tensors cover exactly `data_size` bytes, without overlap. An Error
// says what is wrong; `path` is only named in it.
SafetensorsHeader parse_header(std::string_view json, uint64_t data_size, const std::string& path);

const char* dtype_name(torch::Dtype dtype);  // "F32", …; nullptr: not one we store
torch::Dtype dtype_named(const std::string& name);

}  // namespace lrnn::model
