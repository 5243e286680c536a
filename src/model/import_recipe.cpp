#include <numeric>

#include "base/error.h"
#include "model/import_files.h"
#include "ops/torch.h"

// Where each of our parameters is found in somebody else's checkpoint, whole, in rows or joined.
namespace lrnn::model {
namespace {

std::string replaced(std::string name, const std::string& from, const std::string& to) {
  const size_t at = name.find(from);
  return at == std::string::npos ? std::string() : name.replace(at, from.size(), to);
}

Recipe whole(const PublishedFiles& files, const std::string& name) {
  const auto* found = name.empty() ? nullptr : files.find(name);
  if (!found) return {};
  const int64_t rows = found->shape.empty() ? 1 : found->shape[0];
  return {{{name, 0, rows}}, found->shape};
}

Recipe rows(const PublishedFiles& files, const std::string& name, int64_t row, int64_t count) {
  auto shape = files.find(name)->shape;
  shape[0] = count;
  return {{{name, row, count}}, shape};
}

// One tensor per householder, as in the files of 2025: k_projs.0.weight, k_projs.1.weight, …
Recipe by_householder(const PublishedFiles& files, const std::string& name) {
  for (const std::string part :
       {"k_proj", "v_proj", "b_proj", "k_conv1d", "v_conv1d", "q_conv1d"}) {
    const std::string stem = "." + part + ".";
    if (name.find(stem) == std::string::npos) continue;
    Recipe out;
    for (int64_t j = 0;; ++j) {
      const auto piece = whole(files, replaced(name, stem, cat(".", part, "s.", j, ".")));
      if (piece.pieces.empty() || piece.shape.empty()) return out;
      out.pieces.push_back(piece.pieces[0]);
      if (out.shape.empty())
        out.shape = piece.shape;
      else if (std::equal(out.shape.begin() + 1, out.shape.end(), piece.shape.begin() + 1,
                          piece.shape.end()))
        out.shape[0] += piece.shape[0];
      else
        return {{piece.pieces[0]}, piece.shape};  // the wrong shape is what is told
      if (part == "q_conv1d") return out;         // the others were never read
    }
  }
  return {};
}

// The six mixtures of RWKV-7 in one tensor [6,width].
Recipe one_of_six(const PublishedFiles& files, const std::string& name,
                  const std::vector<int64_t>& shape) {
  constexpr const char* kSix[] = {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"};
  for (int64_t i = 0; i < 6; ++i) {
    if (!name.ends_with(cat(".attn.", kSix[i]))) continue;
    const std::string all = name.substr(0, name.size() - 3) + "x_x";
    const auto* found = files.find(all);
    if (!found) return {};
    const int64_t size =
        std::accumulate(found->shape.begin(), found->shape.end(), int64_t{1}, std::multiplies<>());
    if (found->shape.size() < 2 || found->shape[0] != 6 || size != 6 * shape.back())
      return {{{all, 0, 1}}, found->shape};
    return {{{all, i, 1}}, shape};
  }
  return {};
}

}  // namespace

Recipe find_recipe(const PublishedFiles& files, const std::string& name,
                   const std::vector<int64_t>& shape) {
  // Gate and up in one tensor, as in the files of 2024.
  const std::string gate = "mlp.gate_proj.weight", up = "mlp.up_proj.weight";
  const bool is_gate = name.ends_with(gate), is_up = name.ends_with(up);
  if (is_gate || is_up) {
    const std::string both = is_gate ? name : replaced(name, up, gate);
    const auto* found = files.find(both);
    if (found && found->shape.size() == 2 && found->shape[0] == 2 * shape[0] &&
        !files.find(replaced(both, gate, up)))
      return rows(files, both, is_gate ? 0 : shape[0], shape[0]);
  }
  for (const auto& recipe :
       {whole(files, name), by_householder(files, name), one_of_six(files, name, shape),
        // Where the norms stood inside.
        whole(files, replaced(name, ".attn_norm.", ".attn.norm.")),
        whole(files, replaced(name, ".mlp_norm.", ".mlp.norm.")),
        // The first Mamba's.
        whole(files, replaced(name, "backbone.embeddings.", "backbone.embedding."))})
    if (!recipe.pieces.empty()) return recipe;
  return {};
}

torch::Tensor assemble(PublishedFiles& files, const Recipe& recipe) {
  std::vector<torch::Tensor> parts;
  for (const auto& piece : recipe.pieces) {
    const torch::Tensor all = files.read(piece.name);
    parts.push_back(all.dim() == 0 ? all : all.slice(0, piece.row, piece.row + piece.rows));
  }
  const torch::Tensor out = parts.size() == 1 ? parts[0] : torch::cat(parts, 0);
  return out.reshape(recipe.shape);
}

bool is_unused(const std::string& name) {
  return name.find(".q_conv1ds.") != std::string::npos || name.ends_with("rotary_emb.inv_freq") ||
         name.ends_with("rotary.inv_freq");
}

}  // namespace lrnn::model
