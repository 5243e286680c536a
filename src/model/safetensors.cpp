#include "model/safetensors.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace lrnn::model {
namespace {

using nlohmann::json;

constexpr std::pair<const char*, torch::Dtype> kDtypes[] = {{"F64", torch::kFloat64},
                                                            {"F32", torch::kFloat32},
                                                            {"F16", torch::kFloat16},
                                                            {"BF16", torch::kBFloat16},
                                                            {"I64", torch::kInt64}};

// Thrown inside and turned into an Error with the file's name.
struct Bad {
  std::string what;
};

uint64_t whole_number(const json& value, const std::string& what) {
  if (!value.is_number_unsigned()) throw Bad{cat(what, " is not a whole number")};
  return value.get<uint64_t>();
}

torch::Dtype dtype_of(const json& value, const std::string& name) {
  for (const auto& [text, dtype] : kDtypes)
    if (value == text) return dtype;
  throw Bad{cat("'", name, "' has the unsupported dtype ", value.dump(-1, ' ', true))};
}

StoredTensor parse_tensor(const std::string& name, const json& value) {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets"))
    throw Bad{cat("'", name, "' does not have exactly dtype, shape and data_offsets")};
  StoredTensor out{.name = name, .dtype = dtype_of(value["dtype"], name), .shape = {}};
  const json &shape = value["shape"], &offsets = value["data_offsets"];
  if (!shape.is_array()) throw Bad{cat("'", name, "' has a shape that is not a list")};
  if (!offsets.is_array() || offsets.size() != 2)
    throw Bad{cat("'", name, "' has data_offsets that are not two numbers")};
  out.begin = whole_number(offsets[0], cat("an offset of '", name, "'"));
  out.end = whole_number(offsets[1], cat("an offset of '", name, "'"));
  uint64_t bytes = torch::elementSize(out.dtype);
  bool empty = false;
  for (const auto& item : shape) {
    const uint64_t size = whole_number(item, cat("a size of '", name, "'"));
    // int64 is what torch counts with, in elements and in bytes.
    if (size > INT64_MAX || (size != 0 && bytes > INT64_MAX / size))
      throw Bad{cat("'", name, "' has an impossible shape")};
    if (size == 0)
      empty = true;
    else
      bytes *= size;
    out.shape.push_back(static_cast<int64_t>(size));
  }
  if (empty) bytes = 0;
  if (out.end < out.begin || out.end - out.begin != bytes)
    throw Bad{cat("'", name, "' has ", bytes, " bytes by its shape and dtype, but its offsets are ",
                  out.begin, " and ", out.end)};
  return out;
}

void check_cover(const std::vector<StoredTensor>& tensors, uint64_t data_size) {
  uint64_t at = 0;
  for (const auto& tensor : tensors) {
    if (tensor.begin < at) throw Bad{cat("'", tensor.name, "' overlaps the tensor before it")};
    if (tensor.begin > at) throw Bad{cat("there is a hole before '", tensor.name, "'")};
    at = tensor.end;
    if (at > data_size)
      throw Bad{cat("'", tensor.name, "' ends at byte ", at, " of ", data_size,
                    " bytes of data: the file is cut short")};
  }
  if (at != data_size) throw Bad{cat(data_size - at, " bytes of data belong to no tensor")};
}

SafetensorsHeader parse(std::string_view text, uint64_t data_size) {
  const json root = read_json<json>(text);
  if (!root.is_object()) throw Bad{"the header is not a JSON object"};
  SafetensorsHeader out;
  for (const auto& [name, value] : root.items()) {
    if (name != "__metadata__") {
      out.tensors.push_back(parse_tensor(name, value));
      continue;
    }
    if (!value.is_object()) throw Bad{"__metadata__ is not a JSON object"};
    for (const auto& [key, word] : value.items()) {
      if (!word.is_string()) throw Bad{cat("the metadata '", key, "' is not a string")};
      out.metadata[key] = word.get<std::string>();
    }
  }
  std::sort(out.tensors.begin(), out.tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_cover(out.tensors, data_size);
  return out;
}

}  // namespace

const char* dtype_name(torch::Dtype dtype) {
  for (const auto& [text, value] : kDtypes)
    if (value == dtype) return text;
  return nullptr;
}

torch::Dtype dtype_named(const std::string& name) {
  for (const auto& [text, value] : kDtypes)
    if (name == text) return value;
  throw Error(cat("there is no dtype '", name, "'"));
}

std::string print_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) root["__metadata__"] = header.metadata;
  for (const auto& tensor : header.tensors)
    root[tensor.name] = {{"dtype", dtype_name(tensor.dtype)},
                         {"shape", tensor.shape},
                         {"data_offsets", {tensor.begin, tensor.end}}};
  std::string text;
  try {
    text = root.dump();
  } catch (const json::exception&) {
    throw Error("a name or metadata of a checkpoint is not valid UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

SafetensorsHeader parse_header(std::string_view text, uint64_t data_size, const std::string& path) {
  try {
    return parse(text, data_size);
  } catch (const Bad& e) {
    throw Error(cat(path, " is damaged or not a safetensors file: ", e.what));
  } catch (const BadJson& e) {
    throw Error(cat(path, " is damaged or not a safetensors file: in its header, ", e.what()));
  }
}

}  // namespace lrnn::model
