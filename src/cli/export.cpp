#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/find.h"
#include "cli/output.h"
#include "experiments/run.h"
#include "model/fla_config.h"

namespace lrnn::cli {
namespace {

struct ExportArguments {
  std::string run, out;
  bool json = false;
};

int export_run(const ExportArguments& a) {
  const auto run = open_run(a.run);
  // Asked first: a model that fla cannot say must not leave a folder behind.
  const auto config = model::fla_config(run.config.model, run.task->vocabulary());
  std::error_code failed;
  std::filesystem::create_directories(a.out, failed);
  check(!failed, "cannot make the folder ", a.out, ": ", failed.message());
  model::write_for_fla(a.out, *run.model);
  const auto type = config.at("model_type").get<std::string>();
  if (a.json) {
    print_json({{"run", a.run},
                {"step", run.step},
                {"damaged", run.damaged},
                {"folder", a.out},
                {"model_type", type}});
    return kDone;
  }
  std::cout << a.out << ": config.json and model.safetensors of a fla " << type << " after "
            << thousands(run.step) << " steps.\n\n"
            << "In Python:\n  import fla, transformers\n"
            << "  model = transformers.AutoModelForCausalLM.from_pretrained(\"" << a.out << "\")\n";
  return kDone;
}

}  // namespace

Action export_model(CLI::App& app) {
  auto a = std::make_shared<ExportArguments>();
  app.add_option("RUN", a->run, "a run folder, or a checkpoint in one")->required();
  app.add_option("-o,--out", a->out, "the folder to write")->required()->type_name("DIR");
  app.add_flag("--json", a->json, "one JSON object");
  app.footer(
      "Writes config.json and model.safetensors as flash-linear-attention and transformers read\n"
      "them. The weights of a checkpoint have these names already; this adds the config. Models\n"
      "that fla does not have are refused with the setting it lacks. Of those it has, DeltaNet,\n"
      "Gated DeltaNet and Gated DeltaProduct are exported so far.\n\n"
      "Example:\n  lrnn export runs/x -o exported");
  return [a] { return export_run(*a); };
}

}  // namespace lrnn::cli
