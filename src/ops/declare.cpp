#include "ops/declare.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>

#include <cmath>

#include "ops/torch.h"

namespace lrnn::ops {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

}  // namespace

std::string argument(const Field& field, bool inner) {
  const bool needed = field.need <= Need::kNeeded || (field.need == Need::kForOutputs && !inner);
  return cat("Tensor", needed ? " " : "? ", field.name, needed || inner ? "" : "=None");
}
std::string argument(const char* name, double standard) {
  return std::isnan(standard) ? cat("float ", name) : cat("float ", name, "=", standard);
}
std::string argument(const char* name, bool standard) {
  return cat("bool ", name, "=", standard ? "True" : "False");
}
std::string argument(const char* name, int64_t standard) {
  return cat("int ", name, "=", standard);
}
std::string argument(const char* name, const std::string& standard) {
  return cat("str ", name, "=\"", standard, "\"");
}
std::string argument(const char* name, const std::optional<double>&) {
  return cat("float? ", name, "=None");
}
std::string argument(const char* name, const std::optional<c10::ScalarType>&) {
  return cat("ScalarType? ", name, "=None");
}

Schemas write_schemas(const char* name, const std::vector<std::string>& outer,
                      const std::vector<std::string>& inner, const std::vector<Field>& fields) {
  std::vector<std::string> results, before;
  for (const auto& field : fields) {
    results.push_back(cat("Tensor ", field.name));
    before.push_back(cat("Tensor? d_", field.name));
  }
  for (const auto& field : fields)
    if (field.saved) before.push_back(cat("Tensor final_", field.name));
  // In the inner ops nothing has a default: they are called with all there is.
  std::vector<std::string> plain;
  for (const auto& one : inner) plain.push_back(one.substr(0, one.find('=')));
  const auto all = joined(results);
  return {
      cat(name, "(", joined(outer), ") -> ", results.size() == 1 ? "Tensor" : cat("(", all, ")")),
      cat(name, "_forward(", joined(plain), ", bool save) -> (", all, ", Tensor[] kept)"),
      cat(name, "_backward(", joined(before), ", ", joined(plain), ", Tensor[] kept) -> Tensor[]")};
}

// What stands between an op and its back ends is called below autograd and has no derivative. Who
// calls it by its name and asks for one, backward or forward, is told so; torch would take it for
// zero.
void refuse_derivatives(torch::Library& m, const std::vector<std::string>& names) {
  for (const auto& name : names)
    m.impl(name.c_str(), torch::dispatch(c10::DispatchKey::Autograd,
                                         torch::autograd::autogradNotImplementedFallback()));
}

// The ops as torch sees them: namespace lrnn. Each op's own folder adds its own.
TORCH_LIBRARY(lrnn, m) {
  refuse_derivatives(
      m, {"add_norm", "add_norm_backward", "block_gradient", "block_product", "draw_tokens",
          "few_linear", "few_linear_backward", "gated_mlp", "gated_mlp_backward", "give_rows",
          "take_rows", "thin_linear", "unit_conv_backward", "unit_conv_forward"});
}

}  // namespace lrnn::ops
