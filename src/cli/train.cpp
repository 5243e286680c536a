#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "cli/command.h"
#include "cli/configs_folder.h"
#include "cli/device.h"
#include "cli/interrupt.h"
#include "cli/keys.h"
#include "cli/memory_check.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "experiments/result.h"
#include "experiments/run.h"
#include "experiments/start.h"

namespace lrnn::cli {
namespace {

namespace fs = std::filesystem;

struct TrainArguments {
  std::string config, out, from;
  std::vector<std::string> overrides;
  bool resume = false, quiet = false, json = false, force = false;
};

std::string default_folder(const TrainArguments& a, int64_t seed) {
  if (!a.from.empty())
    return fmt::format("runs/{}-tuned-seed{}", fs::weakly_canonical(a.from).filename().string(),
                       seed);
  return fmt::format("runs/{}-seed{}", fs::path(a.config).stem().string(), seed);
}

void report(const TrainArguments& a, const std::string& out, const training::TrainConfig& t,
            const experiments::TrainResult& result) {
  if (a.json) {
    print_json(Json{{"run", out},
                    {"step", result.step},
                    {"interrupted", result.interrupted},
                    {"skipped", result.skipped},
                    {"seconds", result.seconds},
                    {"evaluation", result.interrupted ? Json(nullptr)
                                                      : experiments::to_json(result.evaluation)}});
    return;
  }
  const auto& e = result.evaluation;
  std::cout << fmt::format("accuracy {:.4f}, scaled {:.4f}", e.accuracy(), e.scaled());
  if (e.tokens.count) std::cout << fmt::format(", per token {:.4f}", e.tokens.accuracy());
  std::cout << fmt::format(" on {} sequences after {} steps in {}\n", thousands(e.sequences.count),
                           thousands(result.step), duration(result.seconds));
  if (result.step < t.steps)
    std::cout << fmt::format("{} steps were not needed: train.stop_at is {}\n",
                             thousands(t.steps - result.step), t.stop_at);
  if (result.skipped) std::cout << fmt::format("{} batches were skipped\n", result.skipped);
  std::cout << "run: " << out << "\n";
  if (!a.quiet) std::cout << "next: lrnn eval " << out << "    lrnn spectrum " << out << "\n";
}

// With --from the config is the other run's, and what stands in its place is a key=value pair.
TrainArguments settle(TrainArguments a) {
  if (a.from.empty()) {
    if (a.config.empty())
      throw Error("no config was given", "`lrnn train configs/tiny.yaml`, or --from a run");
    return a;
  }
  if (a.resume)
    throw Error("--from begins a run and --resume continues one",
                "leave one of them out; a run that was begun with --from needs only --resume");
  if (a.config.find('=') != std::string::npos) {
    a.overrides.insert(a.overrides.begin(), a.config);
    a.config.clear();
  }
  if (a.config.empty()) {
    a.config = a.from + "/config.yaml";
    if (!fs::exists(a.config))
      throw Error(a.from + " is neither a run nor a checkpoint",
                  "give the folder that `lrnn train --out` or `lrnn compile -o` wrote");
  }
  return a;
}

int run_training(const TrainArguments& given, const std::string& device) {
  const auto a = settle(given);
  const auto config = experiments::read_config(find_config(a.config), a.overrides);
  require_memory(config, device, a.force);
  const auto out = a.out.empty() ? default_folder(a, config.seed) : a.out;
  ProgressBar bar(a.quiet);
  watch_interrupts();
  if (!a.quiet) say("training in " + out);
  if (!a.from.empty()) experiments::start_from(a.from, out, config);
  const auto result =
      experiments::train(config, {.out = out,
                                  .device = device,
                                  .resume = a.resume || !a.from.empty(),
                                  .progress = [&](const experiments::Progress& p) { bar.show(p); },
                                  .interrupted = interrupted});
  bar.clear();
  if (result.interrupted) {
    if (a.json) report(a, out, config.train, result);
    std::string command = "lrnn train " + (a.from.empty() ? a.config : out + "/config.yaml");
    for (const auto& o : a.overrides)
      if (a.from.empty()) command += " '" + o + "'";
    say(fmt::format(
        "interrupted at step {} of {}; everything is saved\ngo on with: {} --out {} --resume{}",
        result.step, config.train.steps, command, out,
        device == "cpu" ? "" : " --device " + device));
    return kInterrupted;
  }
  report(a, out, config.train, result);
  return kDone;
}

}  // namespace

Action train(CLI::App& app) {
  auto a = std::make_shared<TrainArguments>();
  app.add_option("CONFIG", a->config, "a file of configs/, or your own");
  app.add_option("KEYS", a->overrides, "key=value pairs that replace what the file says");
  app.add_option("--out", a->out, "the run folder (default: runs/CONFIG-seedSEED)")
      ->type_name("DIR");
  app.add_option("--from", a->from,
                 "begin with the weights of that run, trained or compiled; its config is the "
                 "default")
      ->type_name("RUN");
  app.add_flag("--resume", a->resume, "go on where the run in that folder stopped");
  app.add_flag("--quiet", a->quiet, "no progress, only the result");
  app.add_flag("--force", a->force, "begin although the memory will hardly do");
  app.add_flag("--json", a->json, "the result as one JSON object");
  const auto keys = add_keys(app);
  const auto device = add_device(app);
  app.footer(
      "Example:\n"
      "  lrnn train configs/chomsky/parity_delta_net_2.yaml train.steps=100 seed=7 --out runs/x\n"
      "  lrnn train --from runs/s5-compiled train.steps=100 --out runs/s5-tuned\n"
      "Ctrl-C saves and stops; --resume goes on, to the same bits as an undisturbed run.");
  return [a, device, keys] {
    if (*keys) return show_keys({a->config, a->overrides, a->json});
    require_device(*device);
    return run_training(*a, *device);
  };
}

}  // namespace lrnn::cli
