#include "model/export.h"

#include <filesystem>
#include <iostream>

#include "base/atomic_file.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/find.h"
#include "cli/options.h"
#include "cli/output.h"
#include "experiments/imported.h"
#include "text/sentence_piece_json.h"

namespace lrnn::cli {
namespace {

struct ExportArguments {
  std::string run, out, dtype;
  bool json = false;
};

// A tokenizer.model alone is not what transformers takes it for.
std::vector<std::string> write_tokenizer(const std::string& folder) {
  const std::string model = folder + "/tokenizer.model", to = folder + "/tokenizer.json",
                    config = folder + "/tokenizer_config.json";
  if (!std::filesystem::exists(model) || std::filesystem::exists(to)) return {};
  const auto files = text::tokenizer_files_of(read_file(model), model);
  if (!files) return {};
  write_file(to, files->tokenizer);
  if (std::filesystem::exists(config)) return {"tokenizer.json"};
  write_file(config, files->config);
  return {"tokenizer.json", "tokenizer_config.json"};
}

int export_run(const ExportArguments& a) {
  const auto run = open_run(a.run);
  const auto* known = run.origin ? &*run.origin : nullptr;
  // Asked first: a model that fla cannot say must not leave a folder behind.
  const auto config = model::export_config(run.config.model, run.task->vocabulary(), known);
  std::error_code failed;
  std::filesystem::create_directories(a.out, failed);
  check(!failed, "cannot make the folder ", a.out, ": ", failed.message());
  model::export_model(a.out, *run.model, known, a.dtype);
  const auto around = experiments::run_around(run.folder);
  auto copied = experiments::copy_companions(
      model::is_published(around) ? around : around + "/tokenizer", a.out);
  for (const auto& file : write_tokenizer(a.out)) copied.push_back(file);
  const auto type = config.at("model_type").get<std::string>();
  if (a.json) {
    print_json({{"run", a.run},
                {"step", run.step},
                {"damaged", run.damaged},
                {"folder", a.out},
                {"model_type", type},
                {"copied", copied}});
    return kDone;
  }
  std::cout << a.out << ": config.json and model.safetensors of a " << type << " after "
            << thousands(run.step) << " steps.\n\n"
            << "In Python:\n  import fla, transformers\n"
            << "  model = transformers.AutoModelForCausalLM.from_pretrained(\"" << a.out << "\")\n";
  return kDone;
}

}  // namespace

Action export_model(CLI::App& app) {
  auto a = std::make_shared<ExportArguments>();
  add_run(app, a->run);
  app.add_option("-o,--out", a->out, "the folder to write")->required()->type_name("DIR");
  app.add_option("--dtype", a->dtype,
                 "float32 or bfloat16; absent: that of an imported model's tensors, else float32")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->type_name("TYPE");
  app.add_flag("--json", a->json, "one JSON object");
  app.footer(
      "Writes config.json and model.safetensors as flash-linear-attention and transformers read\n"
      "them, and the tokenizer's files where the run has them. A model that came with `lrnn\n"
      "import` goes out as it came in. Models that fla does not have are refused with the setting\n"
      "it lacks.\n\n"
      "Example:\n  lrnn export runs/x -o exported");
  return [a] { return export_run(*a); };
}

}  // namespace lrnn::cli
