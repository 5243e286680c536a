#include "experiments/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "cli/command.h"
#include "cli/device.h"
#include "cli/open_run.h"
#include "cli/output.h"
#include "cli/word_reader.h"
#include "model/decoder.h"
#include "ops/torch.h"
#include "training/threads.h"

namespace lrnn::cli {
namespace {

using torch::Tensor;

constexpr size_t kTokensAtOnce = 16384;

struct RunArguments {
  std::string run;
  bool every = false, step = false, json = false;
};

// The answers to one word on one line: for people, or a JSON object for scripts.
class Line {
 public:
  Line(bool every, bool json) : every_(every), json_(json) {}

  void add(const std::string& answer) {
    if (json_)
      std::cout << (first_ ? opening() : ",") << Json(answer).dump();
    else
      std::cout << (first_ ? "" : " ") << answer;
    first_ = false;
  }
  void end() {
    if (json_) std::cout << (first_ ? opening() : "") << (every_ ? "]}" : "}");
    std::cout << '\n';
    first_ = true;
  }

 private:
  const char* opening() const { return every_ ? "{\"answers\":[" : "{\"answer\":"; }

  bool every_, json_, first_ = true;
};

// Short words go through the model together, long ones in pieces with the state carried along.
class Answers {
 public:
  Answers(experiments::Run& run, bool every, bool json)
      : run_(run), every_(every), line_(every, json), before_(run.task->before_word()) {}

  void short_word(const std::vector<int64_t>& word) {
    words_.push_back(word);
    size_ += word.size() + before_.size();
    if (size_ >= kTokensAtOnce) flush();
  }

  void flush() {
    if (words_.empty()) return;
    std::vector<int64_t> in, cu = {0};
    for (const auto& w : words_) {
      if (w.empty()) continue;
      in.insert(in.end(), before_.begin(), before_.end());
      in.insert(in.end(), w.begin(), w.end());
      cu.push_back(int64_t(in.size()));
    }
    std::vector<int64_t> got;
    if (!in.empty()) {
      mixers::Context context;
      context.cu_seqlens = torch::tensor(cu);
      context.last_only = !every_;
      model::State state;
      got = ask(torch::tensor(in).unsqueeze(0), state, context);
    }
    size_t at = 0;
    for (const auto& w : words_) {
      if (w.empty()) {
        if (!every_) line_.add(run_.task->empty_answer());
      } else if (!every_) {
        line_.add(word(got[at++]));
      } else {
        at += before_.size();
        for (size_t i = 0; i < w.size(); ++i) line_.add(word(got[at++]));
      }
      line_.end();
    }
    words_.clear();
    size_ = 0;
    std::cout.flush();
  }

  void begin() {
    flush();
    state_.clear();
    if (!before_.empty()) ask(torch::tensor(before_).unsqueeze(0), state_, {});
  }
  void piece(const std::vector<int64_t>& tokens) {
    if (tokens.empty()) return;
    mixers::Context context;
    context.last_only = !every_;
    const auto got = ask(torch::tensor(tokens).unsqueeze(0), state_, context);
    last_ = got.back();
    if (every_)
      for (const int64_t token : got) line_.add(word(token));
  }
  void end() {
    if (!every_) line_.add(word(last_));
    line_.end();
    std::cout.flush();
  }

 private:
  std::vector<int64_t> ask(const Tensor& in, model::State& state, const mixers::Context& context) {
    const Tensor best = run_.model->forward(in.to(run_.model->device()), state, context)
                            .argmax(-1)
                            .cpu()
                            .contiguous();
    return {best.data_ptr<int64_t>(), best.data_ptr<int64_t>() + best.numel()};
  }
  const std::string& word(int64_t token) {
    if (names_.empty())
      for (int64_t t = 0; t < run_.task->vocabulary(); ++t) names_.push_back(run_.task->word(t));
    return names_[size_t(token)];
  }

  experiments::Run& run_;
  bool every_;
  Line line_;
  std::vector<int64_t> before_;
  std::vector<std::vector<int64_t>> words_;
  std::vector<std::string> names_;
  size_t size_ = 0;
  model::State state_;
  int64_t last_ = 0;
};

// One symbol after the other, each answered before the next is looked at.
class Steps {
 public:
  explicit Steps(experiments::Run& run) : run_(run), decoder_(*run.model, 1) {}

  void restart() {
    decoder_.restart();
    for (const int64_t token : run_.task->before_word()) answer(token);
  }
  int64_t answer(int64_t token) {
    const auto begin = Clock::now();
    const int64_t best =
        decoder_.step(torch::tensor({token}, torch::kInt64)).argmax(-1).item<int64_t>();
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
  model::Decoder decoder_;
  std::vector<double> times_;
  int64_t count_ = 0;
};

int run_steps(experiments::Run& run, bool every, bool json) {
  Steps steps(run);
  Line line(every, json);
  WordReader in(*run.task);
  std::vector<int64_t> tokens;
  for (bool ended = false; in.read(tokens, kTokensAtOnce, ended);) {
    steps.restart();
    bool any = false;
    int64_t last = 0;
    for (bool more = true; more; more = !ended && in.read(tokens, kTokensAtOnce, ended))
      for (const int64_t token : tokens) {
        last = steps.answer(token);
        if (every) line.add(run.task->word(last));
        any = true;
      }
    if (!every) line.add(any ? run.task->word(last) : run.task->empty_answer());
    line.end();
    std::cout.flush();
  }
  steps.report();
  return kDone;
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
  const training::Threads threads(threads_for(*run.model, a.every));
  torch::InferenceMode no_gradients;
  run.model->to(torch::Device(device));
  if (a.step) return run_steps(run, a.every, a.json);
  WordReader in(*run.task);
  Answers answers(run, a.every, a.json);
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
  return kDone;
}

}  // namespace

Action run_model(CLI::App& app) {
  auto a = std::make_shared<RunArguments>();
  app.add_option("RUN", a->run, "a run folder, or a checkpoint in one")->required();
  app.add_flag("--every", a->every, "the answer after every symbol, not only after the last");
  app.add_flag("--step", a->step,
               "one symbol at a time, each answered before the next is read; says what one took");
  app.add_flag("--json", a->json, "one JSON object per word: its answer, or answers with --every");
  const auto device = add_device(app);
  app.footer(
      "Reads one word per line: characters when every symbol is one, otherwise symbols separated "
      "by\n"
      "spaces; an empty line is the empty word. Words may be of any length.\n"
      "Answers: accept or reject, the state, or what a trained model of a task says.\n\nExample:\n"
      "  echo abab | lrnn run runs/abab");
  return [a, device] {
    const auto stream = use_device(*device);
    return run_words(*a, *device);
  };
}

}  // namespace lrnn::cli
