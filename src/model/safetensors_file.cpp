#include "model/safetensors_file.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "ops/torch.h"

namespace lrnn::model {
namespace {

// A header of a hundred thousand tensors has about 15 MB. Who claims more wants our memory.
constexpr uint64_t kLargestHeader = 32u << 20;

}  // namespace

void damaged_safetensors(const std::string& path, const std::string& what) {
  throw Error(cat(path, " is damaged or not a safetensors file: ", what));
}

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), in_(path, std::ios::binary) {
  if (!in_) throw Error(cat("cannot read ", path, ": ", std::strerror(errno)));
  in_.seekg(0, std::ios::end);
  const auto end = in_.tellg();
  in_.seekg(0);
  if (!in_ || end < 0) throw Error(cat("cannot read ", path, ": it is not a file"));
  auto left = static_cast<uint64_t>(end);
  if (left < 8) damaged_safetensors(path, "it is cut short");
  uint64_t size = 0;
  read(&size, 8);
  left -= 8;
  if (size > left)
    damaged_safetensors(
        path, cat("its header would be ", size, " bytes long, but only ", left, " follow"));
  if (size > kLargestHeader)
    damaged_safetensors(path, cat("its header would be ", size, " bytes long, and no model needs ",
                                  "more than ", kLargestHeader));
  text_.resize(size);
  read(text_.data(), size);
  data_ = 8 + size;
  header_ = parse_header(text_, left - size, path);
}

torch::Tensor SafetensorsFile::read(const StoredTensor& tensor) {
  torch::Tensor out = torch::empty(tensor.shape, tensor.dtype);
  in_.seekg(static_cast<std::streamoff>(data_ + tensor.begin));
  read(out.data_ptr(), tensor.end - tensor.begin);
  return out;
}

void SafetensorsFile::read(void* to, uint64_t size) {
  if (!in_.read(static_cast<char*>(to), static_cast<std::streamsize>(size)))
    throw Error(cat("cannot read ", path_, ": ", std::strerror(errno)));
}

}  // namespace lrnn::model
