#include "cli/eval.h"

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "text/question.h"

namespace lrnn::cli {

Action eval(CLI::App& app) {
  auto a = std::make_shared<EvalArguments>();
  add_run(app, a->runs, "a run folder, or a checkpoint in one; several side by side");
  auto lengths = std::make_shared<std::string>();
  const auto* given =
      app.add_option("--lengths", *lengths,
                     "LOW:HIGH, one length, or 10,100,1000 (default: the task's, and training's)")
          ->type_name("A:B");
  add_figure(app, a->out, "in RUN/figures");
  add_number(app, "--samples", a->samples, "sequences (default: the task's own number)",
             Least::kAboveZero);
  add_number(app, "--seed", a->seed, "of the sequences (default: the run's)", Least::kZero);
  app.add_option("--precision", a->precision, "float32 or bfloat16 (default: the run's)")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->type_name("NAME");
  app.add_option("--data", a->data,
                 "of a language model: other folders, whose held-out texts are read in windows of "
                 "--lengths (default: the length of training)")
      ->type_name("DIR");
  add_number(app, "--smooth", a->smooth,
             "of a language model: positions in a moving mean of the figure (default: 501)",
             Least::kAboveZero);
  app.add_flag(
      "--rank", a->rank,
      "effective rank of the states by layer and head along a sequence of 16384 tokens (or of "
      "--lengths, or all there are)");
  const auto* const every = add_number(
      app, "--every", a->every,
      "of --rank: tokens from one look at the states to the next (default: 1)", Least::kAboveZero);
  app.add_option("--task", a->tasks,
                 "of a language model: files of questions, lines of JSON (docs/lm.md); -o is then "
                 "a file with a line for each")
      ->type_name("FILE");
  app.add_option(
         "--format", a->format,
         "of --task: auto, native, piqa, hellaswag, winogrande, arc, lambada, wikitext, swde, "
         "squad_completion, fda (default: auto, by the fields)")
      ->check(CLI::IsMember(text::kFormats))
      ->type_name("NAME");
  app.add_option("--bos", a->bos,
                 "of --task: BOS before contexts, never or always (default: never)")
      ->check(CLI::IsMember({"never", "always"}))
      ->type_name("WHEN");
  add_number(app, "--max-length", a->max_length,
             "of --task: tokens read at most (default: 2048, or what an imported model says)",
             Least::kAboveZero);
  app.add_option("--logits", a->logits,
                 "of --task: float32 or bfloat16, what the softmax is of (default: float32)")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->type_name("NAME");
  const auto accuracy = [&](const char* name) {
    return app
        .add_option(name, a->accuracies,
                    "of delta_product with cuda: exact, accurate or fast (default: as the config "
                    "says); several are compared")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(CLI::IsMember({"exact", "accurate", "fast"}))
        ->type_name("NAME,..");
  };
  const auto* const now = accuracy("--accuracy");
  auto* const before = accuracy("--kernel")->group("");  // its name until 0.1
  app.add_flag("--json", a->json, "one JSON object");
  add_progress(app);
  const auto device = add_device(app);
  app.footer(
      "Writes RUN/eval/length.csv and RUN/figures/length.svg, of several runs one figure (-o, or\n"
      "figures/lengths.svg of the first); without options the numbers of the end of training.\n"
      "Several kernels: eval/kernels.md. Of a language model: loss, perplexity and bits per byte "
      "by\n"
      "domain, eval/position.csv and octave.csv, figures/position.svg; of --rank rank.csv and "
      "rank.svg.\n"
      "\nExamples:\n  lrnn eval runs/a runs/b --lengths 40,256,1024 -o twins.svg\n"
      "  lrnn eval runs/plays --data data/prose data/code --lengths 32768 --samples 64");
  return [a, lengths, given, device, now, before, every] {
    if (before->count() > 0) say("warning: --kernel is called --accuracy now");
    if (before->count() > 0 && now->count() > 0)
      throw Error("--kernel and --accuracy are one option", "give --accuracy alone");
    if (!a->accuracies.empty() && *device == "cpu")
      throw Error("--accuracy chooses between GPU kernels", "add --device cuda, or leave it out");
    if (given->count() > 0) a->length = parse_lengths(*lengths);
    const auto stream = use_device(*device);
    if (every->count() > 0 && !a->rank) throw Error("--every belongs to --rank", "add --rank");
    if (a->rank && !a->tasks.empty())
      throw Error("--rank and --task are two things", "ask for one at a time");
    if (a->rank) return evaluate_ranks(*a, *device);
    if (!a->tasks.empty()) return evaluate_tasks(*a, *device);
    if (!a->data.empty() || is_language_model(a->runs[0])) return evaluate_texts(*a, *device);
    return evaluate_runs(*a, *device);
  };
}

}  // namespace lrnn::cli
