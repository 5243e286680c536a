#include "cli/eval.h"

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "text/question.h"

namespace lrnn::cli {

Action eval(CLI::App& app) {
  auto a = std::make_shared<EvalArguments>();
  app.add_option("RUN", a->runs, "a run folder, or a checkpoint in one; several side by side")
      ->required();
  auto lengths = std::make_shared<std::string>();
  const auto* given =
      app.add_option("--lengths", *lengths,
                     "LOW:HIGH, one length, or 10,100,1000 (default: the task's, and training's)")
          ->type_name("A:B");
  app.add_option("-o,--out", a->out, "the figure (default: in RUN/figures)")->type_name("FILE");
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
  app.add_option("--task", a->tasks,
                 "of a language model: files of questions, lines of JSON (docs/lm.md); -o is then "
                 "a file with a line for each")
      ->type_name("FILE");
  app.add_option("--format", a->format,
                 "of --task: auto, native, piqa, hellaswag, winogrande, arc, lambada "
                 "(default: auto, by the fields)")
      ->check(CLI::IsMember(text::kFormats))
      ->type_name("NAME");
  app.add_option("--bos", a->bos,
                 "of --task: BOS before contexts, never or always (default: never)")
      ->check(CLI::IsMember({"never", "always"}))
      ->type_name("WHEN");
  add_number(app, "--max-length", a->max_length, "of --task: tokens read at most (default: 2048)",
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
      "Writes RUN/eval/length.csv and RUN/figures/length.svg; without options the numbers of the "
      "end\n"
      "of training. Several runs of one task read the same sequences (where nothing is given, "
      "those of\n"
      "the first), for one figure: -o, or figures/lengths.svg there. Several kernels are compared "
      "with\n"
      "the recurrence in float32 (RUN/eval/kernels.md, RUN/figures/kernels.svg). Of a language "
      "model:\n"
      "loss, perplexity and bits per byte by domain, and RUN/eval/position.csv, "
      "RUN/figures/position.svg.\n\n"
      "Examples:\n  lrnn eval runs/a runs/b --lengths 40,256,1024 -o twins.svg\n"
      "  lrnn eval runs/plays --data data/prose data/code --lengths 32768 --samples 64\n"
      "  lrnn eval runs/plays --task arc_easy.jsonl piqa.jsonl -o documents.jsonl");
  return [a, lengths, given, device, now, before] {
    if (before->count() > 0) say("warning: --kernel is called --accuracy now");
    if (before->count() > 0 && now->count() > 0)
      throw Error("--kernel and --accuracy are one option", "give --accuracy alone");
    if (!a->accuracies.empty() && *device == "cpu")
      throw Error("--accuracy chooses between GPU kernels", "add --device cuda, or leave it out");
    if (given->count() > 0) a->length = parse_lengths(*lengths);
    const auto stream = use_device(*device);
    if (!a->tasks.empty()) return evaluate_tasks(*a, *device);
    if (!a->data.empty() || is_language_model(a->runs[0])) return evaluate_texts(*a, *device);
    return evaluate_runs(*a, *device);
  };
}

}  // namespace lrnn::cli
