#include "experiments/generate.h"

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <iterator>

#include "base/atomic_file.h"
#include "cli/command.h"
#include "cli/find.h"
#include "cli/options.h"
#include "cli/output.h"
#include "experiments/text_run.h"
#include "text/generated_text.h"
#include "text/tokenizer.h"

namespace lrnn::cli {
namespace {

struct GenerateArguments {
  experiments::GenerateOptions how;
  std::string run, input, prompt, file;
  std::vector<std::string> stops;
  bool json = false, echo = false;
};

std::string prompt_of(const GenerateArguments& a, bool prompt_given) {
  if (!a.input.empty() && a.input != "-")
    throw Error(cat("'", a.input, "' is neither an option nor -"),
                "a prompt is given with --prompt TEXT, --file FILE, or - for standard input");
  if (int(prompt_given) + !a.file.empty() + !a.input.empty() > 1)
    throw Error("several prompts were given", "take one of --prompt, --file and -");
  if (!a.input.empty() || a.file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  return a.file.empty() ? a.prompt : read_file(a.file);
}

// One sequence while it grows.
struct Growing {
  text::GeneratedText reader;
  std::string text = {};
  std::vector<int64_t> ids = {};
  const char* ended = "tokens";  // why

  void print(const std::string& more, bool now) {
    text += now ? "" : more;
    if (now && !more.empty()) std::cout << more << std::flush;
  }
};

int generate_text(const GenerateArguments& a, bool prompt_given, const std::string& device) {
  check(a.how.drawing.top_p > 0 && a.how.drawing.top_p <= 1,
        "--top-p must be above 0 and at most 1, got ", a.how.drawing.top_p);
  const std::string folder = find_run(a.run);
  auto texts = experiments::text_run(folder);
  const auto stream = use_device(device);
  auto run = open_run(folder);
  run.model->to(torch::Device(device));
  const auto tokenizer = text::open_tokenizer(texts.tokenizer);
  texts.or_else(tokenizer->bos, tokenizer->eos);
  check(tokenizer->vocabulary() <= run.model->vocabulary(), "the tokenizer in ", texts.tokenizer,
        " has ", tokenizer->vocabulary(), " tokens, and the model ", run.model->vocabulary());

  const std::string given = prompt_of(a, prompt_given);
  text::Ids ids;
  if (texts.bos) {
    check(*texts.bos < run.model->vocabulary(), "a document begins with the token ", *texts.bos,
          ", and the model has ", run.model->vocabulary());
    ids.push_back(*texts.bos);
  }
  tokenizer->encoder()->encode(given, ids);
  if (ids.empty())
    throw Error("there is nothing to continue: the model's documents have no first token",
                "give the beginning of a text with --prompt");
  const std::vector<int64_t> prompt(ids.begin(), ids.end());

  const bool stream_out = !a.json && a.how.sequences == 1;
  std::vector<Growing> all;
  for (int64_t s = 0; s < a.how.sequences; ++s)
    all.push_back({.reader = text::GeneratedText(*tokenizer, ids, a.stops)});
  if (stream_out && a.echo) std::cout << text::whole_characters(given) << std::flush;
  watch_interrupts();
  bool stopped = false;
  experiments::generate(*run.model, run.config.train.precision, prompt, a.how,
                        [&](int64_t s, int64_t token) {
                          auto& one = all[size_t(s)];
                          if (texts.bos == token || texts.eos == token)
                            return one.ended = "end", false;
                          one.ids.push_back(token);
                          // A model may have more logits than the tokenizer has ids; they say
                          // nothing.
                          if (token < tokenizer->vocabulary())
                            one.print(one.reader.add(int32_t(token)), stream_out);
                          if (one.reader.stopped()) return one.ended = "stop", false;
                          stopped = stopped || interrupted();
                          return !stopped && bool(std::cout);
                        });
  for (auto& one : all) one.print(one.reader.end(), stream_out);
  const int code = stopped ? kInterrupted : kDone;
  if (stream_out) return std::cout << "\n", code;

  Json list = Json::array();
  for (size_t s = 0; s < all.size(); ++s) {
    const auto text = (a.echo ? text::whole_characters(given) : "") + all[s].text;
    list.push_back({{"text", text}, {"ids", all[s].ids}, {"ended", all[s].ended}});
    if (!a.json) std::cout << (s ? "\n" : "") << "--- " << s + 1 << "\n" << text << "\n";
  }
  if (a.json)
    print_json({{"run", folder},
                {"step", run.step},
                {"seed", a.how.seed},
                {"prompt", ids},
                {"sequences", list}});
  return code;
}

}  // namespace

Action generate(CLI::App& app) {
  auto a = std::make_shared<GenerateArguments>();
  auto& how = a->how;
  add_run(app, a->run, "a language model: a run folder, or a checkpoint in one");
  app.add_option("INPUT", a->input, "- : the prompt comes from standard input");
  const auto* prompt =
      app.add_option("--prompt", a->prompt, "the beginning of the text")->type_name("TEXT");
  app.add_option("--file", a->file, "the same from a file, to the byte")->type_name("FILE");
  add_number(app, "--tokens", how.tokens, "at most so many (default: 256)", Least::kZero);
  add_number(app, "--temperature", how.drawing.temperature,
             "logits are divided by it; 0: always the likeliest token (default: 1)", Least::kZero);
  add_number(app, "--top-k", how.drawing.top_k, "only the K likeliest tokens; 0: all (default: 0)",
             Least::kZero);
  add_number(app, "--top-p", how.drawing.top_p,
             "then only the likeliest that have this share together (default: 1)",
             Least::kAboveZero);
  add_number(app, "--seed", how.seed, "of the draws (default: 1)", Least::kZero);
  add_number(app, "--batch", how.sequences, "so many texts side by side (default: 1)",
             Least::kAboveZero);
  app.add_option("--stop", a->stops, "ends the text before TEXT; may be given several times")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  app.add_flag("--echo", a->echo, "print the prompt, too");
  app.add_flag("--json", a->json, "one JSON object: text and ids");
  const auto device = add_device(app);
  app.footer(
      "Prints the continuation alone, as it comes. It ends after --tokens, at a --stop, or where "
      "the\n"
      "model begins another document. The same seed gives the same text for the same --batch and\n"
      "device: other sizes may round otherwise.\n\n"
      "Examples:\n  lrnn generate runs/plays --prompt 'MACBETH. ' --temperature 0.8\n"
      "  lrnn generate runs/plays --file start.txt --tokens 1000 --stop 'ACT'");
  return [a, prompt, device] { return generate_text(*a, prompt->count() > 0, *device); };
}

}  // namespace lrnn::cli
