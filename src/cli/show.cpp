#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

#include "cli/command.h"
#include "cli/find.h"
#include "cli/keys.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/train.h"
#include "experiments/run.h"
#include "figures/table.h"
#include "training/flops.h"

namespace lrnn::cli {
namespace {

struct ShowArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false, markdown = false;
};

std::string shape(const torch::Tensor& tensor) {
  std::string out;
  for (const int64_t size : tensor.sizes())
    out += (out.empty() ? "" : " × ") + std::to_string(size);
  return out;
}

std::vector<std::string> block_mixers(const model::ModelConfig& c) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < c.layers; ++i) out.emplace_back(lrnn::mixers::find(c.mixer_of(i)).name);
  return out;
}

// Nothing is computed, so nothing is allocated: the sizes of any model can be looked at.
int show_config(const ShowArguments& a) {
  if (a.markdown) throw Error("--markdown belongs to --keys", "`lrnn show --keys --markdown`");
  if (a.config.empty())
    throw Error("no config was given", "`lrnn show configs/tiny.yaml`, or --keys for all keys");
  const auto config = experiments::read_config(find_config(a.config), a.overrides);
  const auto task = lrnn::tasks::make(config.task);
  const auto model = model::Model::shapes(config.model, task->vocabulary());
  const auto memory = training::estimate_memory(*model, *task, config.train);
  const auto resolved = experiments::resolve(config);
  const double flops =
      training::flops_per_token(*model, task->length(lrnn::tasks::Split::kTrain).hi);

  int64_t total = 0;
  figures::Table table({"tensor", "shape", "parameters", "decay"});
  Json tensors = Json::array();
  for (const auto& item : model->named_parameters()) {
    const bool decays = model->decays(item.key());
    total += item.value().numel();
    table.row(
        {item.key(), shape(item.value()), thousands(item.value().numel()), decays ? "yes" : "no"});
    tensors.push_back({{"name", item.key()},
                       {"shape", item.value().sizes().vec()},
                       {"parameters", item.value().numel()},
                       {"decays", decays}});
  }
  if (a.json) {
    print_json({{"config", to_json(resolved)},
                {"vocabulary", task->vocabulary()},
                {"chance", task->chance()},
                {"parameters", total},
                {"mixers", block_mixers(config.model)},
                {"state_floats", model->state_size()},
                {"state_floats_per_token", model->state_size(1) - model->state_size()},
                {"flops_per_token", flops},
                {"memory", to_json(memory)},
                {"tensors", tensors}});
    return kDone;
  }
  std::cout << YAML::Dump(resolved) << "\n\n" << table.text() << "\n";
  if (config.model.hybrid.any())
    std::cout << fmt::format("mixers of the blocks: {}\n",
                             fmt::join(block_mixers(config.model), ", "));
  const int64_t per_token = model->state_size(1) - model->state_size();
  std::cout << fmt::format(
      "{} blocks of width {}; {} parameters; a state of {} floats per sequence{}; {} token ids\n",
      config.model.layers, config.model.width, thousands(total), thousands(model->state_size()),
      per_token > 0 ? " and " + thousands(per_token) + " per token" : "", task->vocabulary());
  std::cout << fmt::format("training multiplies and adds {:.4g} MFLOP a token\n", flops / 1e6);
  std::cout << "training takes " << memory_text(memory) << "\n";
  return kDone;
}

}  // namespace

Action show(CLI::App& app) {
  auto a = std::make_shared<ShowArguments>();
  add_config(app, a->config, a->overrides);
  const auto keys = add_keys(app);
  app.add_flag("--markdown", a->markdown, "with --keys: all of them as docs/reference.md");
  app.add_flag("--json", a->json, "one JSON object");
  app.footer(
      "Example:\n"
      "  lrnn show configs/chomsky/parity_delta_net_2.yaml model.layers=3\n"
      "  lrnn show configs/tiny.yaml --keys\n"
      "A text behind the = is taken to the letter (task.regex='!(ab)*'); all else is YAML.");
  return [a, keys] {
    return *keys ? show_keys({a->config, a->overrides, a->json, a->markdown}) : show_config(*a);
  };
}

}  // namespace lrnn::cli
