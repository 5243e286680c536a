#include "experiments/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "cli/command.h"
#include "cli/find.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run.h"
#include "model/decoder.h"
#include "ops/torch.h"
#include "training/threads.h"

namespace lrnn::cli {
namespace {

using torch::Tensor;

constexpr size_t kTokensAtOnce = 16384;

struct RunArguments : RunOptions {
  std::string run;
  bool step = false, key = false;
};

// One symbol after the other, each answered before the next is looked at.
class Steps {
 public:
  Steps(experiments::Run& run, const RunOptions& options)
      : run_(run), speaker_(run, options), decoder_(*run.model, 1) {}

  const Speaker& speaker() const { return speaker_; }
  void restart() {
    decoder_.restart();
    state_.clear();
    for (const int64_t token : run_.task->before_word()) answer(token);
  }
  int64_t answer(int64_t token) {
    const auto begin = Clock::now();
    const Tensor in = torch::tensor({token}, torch::kInt64);
    const int64_t best = speaker_.reads_states() ? speaker_.ask(in.unsqueeze(0), state_, {})[0]
                                                 : decoder_.step(in).argmax(-1).item<int64_t>();
    if (times_.size() < kTimes)
      times_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    ++count_;
    return best;
  }
  // The median: the first steps record, and cost more.
  void report() {
    if (times_.empty()) return;
    const auto middle = times_.begin() + ptrdiff_t(times_.size() / 2);
    std::nth_element(times_.begin(), middle, times_.end());
    fmt::print(
        stderr, "{} symbols, {:.1f} microseconds each{}\n", count_, *middle,
        decoder_.kernels() ? fmt::format(" (one launch of {} kernels)", decoder_.kernels()) : "");
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kTimes = 65536;
  experiments::Run& run_;
  Speaker speaker_;
  model::Decoder decoder_;
  model::State state_;  // where the decoder has no part in it
  std::vector<double> times_;
  int64_t count_ = 0;
};

void step_through(WordReader& in, Steps& steps, Line& line, bool every) {
  std::vector<int64_t> tokens;
  for (bool ended = false; in.read(tokens, kTokensAtOnce, ended);) {
    steps.restart();
    bool any = false;
    int64_t last = 0;
    for (bool more = true; more; more = !ended && in.read(tokens, kTokensAtOnce, ended))
      for (const int64_t token : tokens) {
        last = steps.answer(token);
        if (every) line.add(steps.speaker().name(last));
        any = true;
      }
    if (!every) line.add(any ? steps.speaker().name(last) : steps.speaker().empty());
    line.end();
    std::cout.flush();
  }
}

void answer_all(WordReader& in, Answers& answers) {
  std::vector<int64_t> tokens;
  for (bool ended = false; in.read(tokens, kTokensAtOnce, ended);) {
    if (ended) {
      answers.short_word(tokens);
    } else {
      answers.begin();
      answers.piece(tokens);
      while (!ended && in.read(tokens, kTokensAtOnce, ended)) answers.piece(tokens);
      answers.end();
    }
    if (!in.more_is_waiting()) answers.flush();
  }
  answers.flush();
}

// Waking a second thread at every op costs more than it brings where little is computed per token:
// of the first layer only what its kernel does, and of the last the final answer.
int64_t threads_for(const model::Model& model, bool every) {
  constexpr double kWorthSharing = 1e10;
  double weights = 0;
  for (const auto& item : model.named_parameters())
    if (every || !item.key().starts_with("lm_head")) weights += double(item.value().numel());
  const bool lookups = model.config().layers == 1 && model.config().mlp.name == "none" && !every;
  const bool one = lookups || 2 * weights * double(kTokensAtOnce) < kWorthSharing;
  return one ? 1 : at::get_num_threads();
}

int run_words(const RunArguments& a, const std::string& device) {
  auto run = open_run(a.run);
  if (a.key) return print_key(*run.task, a.json), kDone;
  const training::Threads threads(threads_for(*run.model, a.every));
  torch::InferenceMode no_gradients;
  run.model->to(torch::Device(device));
  WordReader in(*run.task);
  if (::isatty(0)) say(cat("words of ", in.letters().some(), ", one per line; Ctrl-D ends"));
  // The words before one that cannot be read are answered.
  if (a.step) {
    Steps steps(run, a);
    Line line(a.every, a.json);
    try {
      step_through(in, steps, line, a.every);
    } catch (const Error&) {
      line.break_off();
      throw;
    }
    steps.report();
    return kDone;
  }
  Answers answers(run, a);
  try {
    answer_all(in, answers);
  } catch (const Error&) {
    answers.break_off();
    throw;
  }
  return kDone;
}

}  // namespace

Action run_model(CLI::App& app) {
  auto a = std::make_shared<RunArguments>();
  add_run(app, a->run);
  app.add_flag("--every", a->every, "the answer after every symbol, not only after the last");
  app.add_flag("--step", a->step,
               "one symbol at a time, each answered before the next is read; says what one took");
  app.add_flag("--states", a->states,
               "of a model that says accept or reject: the state it is in, as explain draws it");
  app.add_flag("--ids", a->ids, "of a group: elements by number, not as cycles");
  app.add_flag("--key", a->key, "of a group: its elements as number, cycles and one-line notation");
  app.add_flag("--json", a->json, "one JSON object per word: its answer, or answers with --every");
  const auto device = add_device(app);
  app.footer(
      "Reads one word per line: characters when every symbol is one, otherwise symbols separated "
      "by\n"
      "spaces; an empty line is the empty word. Words may be of any length.\n"
      "Answers: accept or reject, the state, or what a trained model of a task says. After a "
      "symbol\n"
      "that the model does not know it ends with exit code 2; the lines before are answered.\n\n"
      "Elements of a group are written as cycles, (1 2)(3 4) or (12)(34), or as ids; e or () is "
      "the\n"
      "identity. Points count from 1. The answer is the product, whose last factor acts first:\n"
      "(12) (23) gives (123). The ids are those of the papers.\n\nExample:\n"
      "  echo abab | lrnn run runs/abab\n  echo '(1 2) (2 3)' | lrnn run runs/s3");
  return [a, device] {
    const auto stream = use_device(*device);
    return run_words(*a, *device);
  };
}

}  // namespace lrnn::cli
