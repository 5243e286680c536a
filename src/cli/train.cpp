#include "cli/train.h"

#include <fmt/format.h>

#include <iostream>

#include "cli/command.h"
#include "cli/find.h"
#include "cli/keys.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "experiments/metrics.h"
#include "experiments/run.h"

namespace lrnn::cli {
namespace {

// Of a language model the loss, of the others the accuracy.
std::string score_text(const training::Evaluation& e) {
  if (e.of_text()) {
    const auto all = e.all_domains();
    return fmt::format("loss {:.4f}, perplexity {}, bits per byte {}, accuracy {:.4f}", e.loss,
                       decimals(all.perplexity(), 2), decimals(all.bits_per_byte(), 4),
                       e.accuracy());
  }
  auto out = fmt::format("accuracy {:.4f}, scaled {:.4f}", e.accuracy(), e.scaled());
  return e.tokens.count ? out + fmt::format(", per token {:.4f}", e.tokens.accuracy()) : out;
}

void report(const TrainArguments& a, const std::string& out, const training::TrainConfig& t,
            const experiments::TrainResult& result) {
  if (a.json) {
    print_json(Json{{"run", out},
                    {"step", result.step},
                    {"interrupted", result.interrupted},
                    {"skipped", result.skipped},
                    {"seconds", result.seconds},
                    {"damaged", result.damaged},
                    {"evaluation", result.interrupted ? Json(nullptr)
                                                      : experiments::to_json(result.evaluation)}});
    return;
  }
  const auto& e = result.evaluation;
  std::cout << score_text(e);
  std::cout << fmt::format(" on {} sequences after {} steps in {}\n", thousands(e.sequences.count),
                           thousands(result.step), duration(result.seconds));
  if (result.step < t.steps)
    std::cout << fmt::format("{} steps were not needed: train.stop_at is {}\n",
                             thousands(t.steps - result.step), t.stop_at);
  if (result.skipped) std::cout << fmt::format("{} batches were skipped\n", result.skipped);
  std::cout << "run: " << out << "\n";
  if (!a.quiet)
    std::cout << "next: lrnn " << (e.of_text() ? "generate " : "eval ") << out << "    lrnn "
              << (e.of_text() ? "eval " : "spectrum ") << out << "    lrnn curves " << out << "\n";
}

// What a second look at a run that is over should say.
void say_how_to_extend(const std::string& out, const training::TrainConfig& t, int64_t step) {
  say(fmt::format("the run has ended already; longer: lrnn train {} --resume {}", shell_word(out),
                  step < t.steps ? "train.stop_at=0" : fmt::format("train.steps={}", 2 * t.steps)));
}

// One process of several speaks, the lead.
int train_one(TrainArguments a, const std::string& device) {
  const training::Ranks ranks(a.group, device);
  a.quiet |= !ranks.lead();
  const auto config = experiments::read_config(a.config, a.overrides);
  auto share = config;  // of a batch, and like a part of it: its gradients are added to others
  share.train.accumulate *= ranks.count();
  require_memory(share, device, a.force);
  const auto out = a.out.empty() ? default_folder(a, config.seed) : a.out;
  ProgressBar bar(a.quiet);
  watch_interrupts();
  if (!a.quiet) say("training in " + out);
  std::vector<std::string> damaged;
  if (!a.from.empty() && ranks.lead()) {
    const auto from = experiments::start_from(a.from, out, config, a.overwrite);
    warn_of_damage(from);
    damaged = from.damaged;
  }
  auto result = experiments::train(
      config,
      {.out = out,
       .device = device,
       .resume = a.resume || !a.from.empty(),
       .extend = a.resume && a.extend(),
       .overwrite = a.overwrite && a.from.empty(),
       .tensorboard = a.tensorboard,
       .ranks = ranks,
       .verify = a.verify,
       .progress = [&](const experiments::Progress& p) { bar.show(p), tell({.progress = p}); },
       .warn = warn,
       .interrupted = interrupted});
  bar.clear();
  result.damaged.insert(result.damaged.begin(), damaged.begin(), damaged.end());
  if (!ranks.lead()) return result.interrupted ? kInterrupted : kDone;
  if (result.interrupted) {
    if (a.json) report(a, out, config.train, result);
    say(fmt::format(
        "interrupted at step {} of {}; everything is saved\ngo on with: lrnn train {} --resume{}",
        result.step, config.train.steps, shell_word(out),
        device == "cpu" ? "" : " --device " + device));
    return kInterrupted;
  }
  report(a, out, config.train, result);
  if (!a.quiet && !a.json && a.resume && result.began == result.step)
    say_how_to_extend(out, config.train, result.step);
  return kDone;
}

}  // namespace

Action train(CLI::App& app) {
  auto a = std::make_shared<TrainArguments>();
  add_config(app, a->config, a->overrides,
             "a file of configs/, or your own; or a RUN with --resume");
  app.add_option("--out", a->out, "the run folder (default: runs/CONFIG-seedSEED)")
      ->type_name("DIR");
  app.add_option("--from", a->from,
                 "begin with the weights of that run, trained or compiled; its config is the "
                 "default")
      ->type_name("RUN");
  app.add_flag("--resume", a->resume, "go on where the run stopped; train.steps=N makes it longer");
  app.add_flag("--overwrite", a->overwrite, "remove the run in that folder first");
  auto* seeds =
      add_number(app, "--seeds", a->seeds,
                 "train N runs with seeds that follow one another, in DIR/seedN, and sum up",
                 Least::kAboveZero);
  add_number(app, "--jobs", a->jobs, "so many of them at once (default: 1)", Least::kAboveZero)
      ->needs(seeds);
  app.add_flag("--tensorboard", a->tensorboard,
               "also write files for TensorBoard into RUN/tensorboard");
  app.add_flag("--verify", a->verify,
               "of texts: check the sums of all data, as at their first use on a machine");
  app.add_flag("--quiet", a->quiet, "no progress, only the result");
  app.add_flag("--force", a->force, "begin although the memory will hardly do");
  app.add_flag("--json", a->json, "the result as one JSON object");
  app.add_option("--group", a->group,
                 "the process group this process is one of; `torchrun -m lrnn train` gives it")
      ->type_name("NAME")
      ->excludes(seeds);
  add_progress(app)->excludes(seeds);
  const auto keys = add_keys(app);
  const auto device = add_device(app);
  app.footer(
      "Example:\n"
      "  lrnn train configs/chomsky/parity_delta_net_2.yaml train.steps=100 seed=7 --out runs/x\n"
      "  lrnn train runs/x --resume train.steps=200\n"
      "  lrnn train --from runs/s5-compiled train.steps=100 --out runs/s5-tuned\n"
      "  torchrun --nproc-per-node 2 -m lrnn train configs/tiny.yaml --out runs/y\n"
      "Ctrl-C saves and stops; --resume goes on, to the same bits as an undisturbed run.");
  return [a, device, keys] {
    if (*keys) return show_keys({a->config, a->overrides, a->json});
    require_device(*device);
    const auto settled = settle(*a);
    return settled.seeds > 0 ? train_seeds(settled, *device) : train_one(settled, *device);
  };
}

}  // namespace lrnn::cli
