#include <fmt/format.h>

#include <iostream>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/output.h"
#include "experiments/imported.h"

namespace lrnn::cli {
namespace {

struct ImportArguments {
  std::string folder, out, check;
  bool json = false;
};

constexpr int64_t kMostIds = 2048, kShown = 8;

std::vector<int64_t> read_ids(const std::string& path, int64_t vocabulary) {
  Json root;
  try {
    root = read_json<Json>(read_file(path));
  } catch (const BadJson& e) {
    throw Error(cat(path, " cannot be read: ", e.what()));
  }
  if (!root.is_array() || root.empty())
    throw Error(cat(path, " is not a list of ids"), "such as [1, 4521, 13]");
  std::vector<int64_t> out;
  for (const auto& id : root) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= uint64_t(vocabulary))
      throw Error(cat(path, ": ", id.dump(), " is not an id below ", vocabulary));
    if (int64_t(out.size()) < kMostIds) out.push_back(id.get<int64_t>());
  }
  return out;
}

struct Checked {
  torch::Tensor logits;  // [n,vocabulary]
  std::vector<int64_t> ids;
  double loss = 0;  // mean over the ids but the first, in nats
};

Checked check_ids(model::Model& model, const std::string& path) {
  const torch::NoGradGuard no_grad;
  Checked out{.logits = {}, .ids = read_ids(path, model.vocabulary())};
  const auto tokens = torch::tensor(out.ids).unsqueeze(0);
  model::State state;
  const auto logits = model.forward(tokens, state)[0];
  const auto next = tokens[0].slice(0, 1);
  if (next.numel() > 0)
    out.loss = torch::nll_loss(logits.slice(0, 0, -1).log_softmax(1), next).item<double>();
  out.logits = logits.slice(0, 0, kShown);
  return out;
}

Json check_json(const Checked& c) {
  Json rows = Json::array();
  for (int64_t t = 0; t < c.logits.size(0); ++t) {
    const auto row = c.logits[t].contiguous();
    rows.push_back(std::vector<float>(row.data_ptr<float>(), row.data_ptr<float>() + row.numel()));
  }
  return {
      {"ids", c.ids.size()}, {"loss", c.ids.size() > 1 ? Json(c.loss) : Json()}, {"logits", rows}};
}

void print_check(const Checked& c) {
  std::cout << "\ntoken      id   its first logits …                         the largest\n";
  for (int64_t t = 0; t < c.logits.size(0); ++t) {
    const auto row = c.logits[t];
    std::cout << fmt::format("{:5} {:7}  ", t, c.ids[size_t(t)]);
    for (int64_t v = 0; v < std::min<int64_t>(4, row.numel()); ++v)
      std::cout << fmt::format(" {:9.5f}", row[v].item<double>());
    std::cout << fmt::format("   {:9.5f} of {}\n", row.max().item<double>(),
                             row.argmax().item<int64_t>());
  }
  if (c.ids.size() > 1)
    std::cout << fmt::format("loss of {} ids: {:.6f} nats each\n", c.ids.size() - 1, c.loss);
}

int import_folder(const ImportArguments& a) {
  if (a.out.empty() && a.check.empty())
    throw Error("there is nothing to do", "-o names the run folder to write; --check looks only");
  const auto imported = model::import_model(a.folder);
  auto& model = *imported.model;
  if (!a.out.empty()) experiments::write_imported(a.out, a.folder, imported);
  const auto type = imported.origin.config.at("model_type").get<std::string>();
  Json about{{"folder", a.folder},
             {"model_type", type},
             {"parameters", model.parameter_count()},
             {"vocabulary", model.vocabulary()},
             {"dtype", imported.origin.dtype},
             {"run", a.out.empty() ? Json() : Json(a.out)}};
  std::optional<Checked> checked;
  if (!a.check.empty()) checked = check_ids(model, a.check);
  if (checked) about["check"] = check_json(*checked);
  if (a.json) return print_json(about), kDone;
  std::cout << a.folder << ": " << type << ", " << thousands(model.parameter_count())
            << " parameters, " << thousands(model.vocabulary()) << " tokens, "
            << imported.origin.dtype << "\n";
  if (checked) print_check(*checked);
  if (!a.out.empty())
    std::cout << "run: " << a.out << "\nnext: lrnn spectrum " << a.out << "    lrnn export "
              << a.out << " -o DIR\n";
  return kDone;
}

}  // namespace

Action import_model(CLI::App& app) {
  auto a = std::make_shared<ImportArguments>();
  app.add_option("FOLDER", a->folder, "config.json and model.safetensors, in one file or several")
      ->required();
  app.add_option("-o,--out", a->out, "the run folder to write")->type_name("DIR");
  app.add_option("--check", a->check,
                 "ids as a JSON list: print the logits of the first 8 and the loss of up to 2048")
      ->type_name("FILE");
  app.add_flag("--json", a->json, "one JSON object; with --check all logits of the 8");
  app.footer(
      "Reads a model of flash-linear-attention or transformers and writes it as a run at step 0:\n"
      "eval, generate, spectrum, export and `train --from` open it like any other. Its task is\n"
      "`tokens`, which has no data; its tokenizer's files are kept in DIR/tokenizer.\n"
      "Types: delta_net, gated_deltanet, gated_deltaproduct.\n\n"
      "Example:\n  lrnn import delta_net-1.3B-100B -o runs/delta_net\n"
      "  lrnn import delta_net-1.3B-100B --check ids.json");
  return [a] { return import_folder(*a); };
}

}  // namespace lrnn::cli
