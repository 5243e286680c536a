#pragma once
#include <map>
#include <string>

#include "base/checksum.h"
#include "ops/torch.h"

// Named tensors and a few words about them in one safetensors file: what fla, transformers and
// everybody else reads. Written atomically, with a checksum over every byte of the file.
//
//   8 bytes   length of the header, little endian
//   header    JSON: {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, …,
//             "__metadata__": {"key": "value", …}}, padded with spaces
//   data      the tensors end to end, little endian
//
// dtypes: float64, float32, float16, bfloat16, int64.
namespace lrnn::model {

struct Checkpoint {
  std::map<std::string, torch::Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Returns size and checksum of the whole file, for those who note them elsewhere.
FileSum write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// A file that write_checkpoint wrote. Anything that is not exactly that (cut short, a flipped bit,
// another format) is an Error that names the file and what is wrong with it.
Checkpoint read_checkpoint(const std::string& path);
// Any safetensors file, also one without our checksum.
Checkpoint read_safetensors(const std::string& path);

// Every parameter and buffer of the module under its full name. They share the module's memory.
std::map<std::string, torch::Tensor> tensors_of(const torch::nn::Module& module);
// Copies the tensors into the module's parameters and buffers of the same names, converting the
// dtype. Missing, unexpected and mis-shaped ones are one Error that lists them; `source` (a file)
// is named in it. Nothing is copied unless everything fits.
void load_into(torch::nn::Module& module, const std::map<std::string, torch::Tensor>& tensors,
               const std::string& source);

}  // namespace lrnn::model
