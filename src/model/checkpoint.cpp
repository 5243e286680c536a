#include "model/checkpoint.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/error.h"
#include "model/safetensors_file.h"

namespace lrnn::model {
namespace {

using torch::Tensor;
static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

// The sum is taken over the whole file with these eight digits in the place of the sum itself.
constexpr const char* kChecksumKey = "lrnn.crc32c";
constexpr std::string_view kNoChecksum = "00000000";

// Where the digits stand in the header, or npos. Inside a JSON string a quote is written \", so
// this text cannot be part of a name or value.
size_t checksum_at(const std::string& header) {
  const std::string key = cat("\"", kChecksumKey, "\":\"");
  const size_t found = header.find(key);
  if (found == std::string::npos) return found;
  const size_t at = found + key.size();
  return at + kNoChecksum.size() < header.size() ? at : std::string::npos;
}

std::string size_bytes(uint64_t size) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &size, 8);
  return out;
}

// Largest elements first, so that every tensor starts at a multiple of its element size.
std::vector<std::pair<std::string, Tensor>> in_file_order(
    const std::map<std::string, Tensor>& tensors, const std::string& path) {
  std::vector<std::pair<std::string, Tensor>> out;
  for (const auto& [name, tensor] : tensors) {
    check(tensor.defined(), "cannot write ", path, ": the tensor '", name, "' is undefined");
    check(dtype_name(tensor.scalar_type()) != nullptr && name != "__metadata__", "cannot write ",
          path, ": the tensor '", name, "' of dtype ", tensor.scalar_type(), " cannot be stored");
    out.emplace_back(name, tensor.detach().cpu().contiguous());
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.second.element_size() > b.second.element_size();
  });
  return out;
}

Checkpoint read(const std::string& path, bool need_checksum) {
  SafetensorsFile in(path);
  Checkpoint out{.tensors = {}, .metadata = in.header().metadata};
  std::string text = in.text();
  const size_t digits = checksum_at(text);
  const auto stored = out.metadata.extract(kChecksumKey);
  if (need_checksum && stored.empty()) damaged_safetensors(path, "it has no checksum");
  if (!stored.empty()) {
    if (digits == std::string::npos) damaged_safetensors(path, "its checksum is malformed");
    text.replace(digits, kNoChecksum.size(), kNoChecksum);
  }
  Crc32c sum;
  sum.add(size_bytes(text.size()));
  sum.add(text);
  for (const auto& item : in.header().tensors) {
    const Tensor tensor = in.read(item);
    sum.add(tensor.data_ptr(), item.end - item.begin);
    out.tensors.emplace(item.name, tensor);
  }
  if (!stored.empty() && stored.mapped() != sum.text())
    damaged_safetensors(
        path, cat("its checksum is ", sum.text(), ", but ", stored.mapped(), " was written"));
  return out;
}

std::string shape_text(const Tensor& tensor) { return cat(tensor.sizes()); }

}  // namespace

FileSum write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  const auto tensors = in_file_order(checkpoint.tensors, path);
  SafetensorsHeader header{.tensors = {}, .metadata = checkpoint.metadata};
  header.metadata.emplace("format", "pt");  // transformers insists on it
  header.metadata[kChecksumKey] = kNoChecksum;
  uint64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    header.tensors.push_back({name, tensor.scalar_type(), tensor.sizes().vec(), at, 0});
    header.tensors.back().end = at += tensor.nbytes();
  }
  std::string text = print_header(header);
  const std::string size = size_bytes(text.size());
  std::vector<std::string_view> pieces = {size, text};
  Crc32c data;
  for (const auto& [name, tensor] : tensors) {
    pieces.emplace_back(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
    data.add(pieces.back());
  }
  const auto whole = [&] {
    Crc32c sum;
    sum.add(size), sum.add(text), sum.add(data, at);
    return sum.text();
  };
  text.replace(checksum_at(text), kNoChecksum.size(), whole());
  write_atomically(path, pieces);
  return {size.size() + text.size() + at, whole()};
}

Checkpoint read_checkpoint(const std::string& path) { return read(path, true); }
Checkpoint read_safetensors(const std::string& path) { return read(path, false); }

std::map<std::string, Tensor> tensors_of(const torch::nn::Module& module) {
  std::map<std::string, Tensor> out;
  for (const auto& item : module.named_parameters()) out.emplace(item.key(), item.value());
  for (const auto& item : module.named_buffers()) out.emplace(item.key(), item.value());
  return out;
}

void load_into(torch::nn::Module& module, const std::map<std::string, Tensor>& tensors,
               const std::string& source) {
  const auto own = tensors_of(module);
  std::string wrong;
  for (const auto& [name, tensor] : own) {
    const auto found = tensors.find(name);
    if (found == tensors.end())
      wrong += cat("\n  ", name, " ", shape_text(tensor), " is missing");
    else if (found->second.sizes() != tensor.sizes())
      wrong += cat("\n  ", name, " is ", shape_text(found->second), ", the model has ",
                   shape_text(tensor));
  }
  for (const auto& [name, tensor] : tensors)
    if (!own.contains(name)) wrong += cat("\n  ", name, " ", shape_text(tensor), " is unexpected");
  if (!wrong.empty())
    throw Error(cat(source, " does not fit the model:", wrong),
                "is it the checkpoint of another config?");
  const torch::NoGradGuard no_grad;
  for (auto [name, tensor] : own) tensor.copy_(tensors.at(name));
}

}  // namespace lrnn::model
