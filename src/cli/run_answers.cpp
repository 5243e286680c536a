#include "cli/output.h"
#include "cli/run.h"
#include "experiments/compiled.h"
#include "ops/torch.h"
#include "tasks/automaton.h"

// `lrnn run`: words in, answers out, as the task or the automaton names them.
namespace lrnn::cli {

using torch::Tensor;

namespace {

constexpr size_t kTokensTogether = 16384;

}  // namespace

Speaker::Speaker(experiments::Run& run, const RunOptions& options) : run_(run) {
  for (int64_t t = 0; t < run.task->vocabulary(); ++t) names_.push_back(run.task->word(t));
  empty_ = run.task->empty_answer();
  if (options.states) name_states(run);
  if (options.ids) name_elements(*run.task);
}

void Speaker::name_states(const experiments::Run& run) {
  const auto name = run.config.task.text("name");
  if (name == "group") return;  // the answer is the state
  if (name != "automaton")
    throw Error(cat("the task ", name, " has no automaton whose states could be told"),
                "--states is for compiled models, and for models of the task automaton");
  const auto subject = tasks::subject_of(run.config.task);
  if (!subject.recogniser) return;
  if (!experiments::is_compiled(run.folder) || run.step != 0)
    throw Error(
        "this model was trained to say accept or reject, and where it keeps its state is "
        "not known",
        "`lrnn compile … --states` makes a model that answers with states; training from "
        "it keeps that");
  compiled_ = experiments::recompile(run);
  readout_ = std::make_unique<compile::StateReadout>(*compiled_);
  const auto& a = compiled_->subject.automaton;
  names_.clear();
  for (int64_t s = 0; s < a.states; ++s) names_.push_back(a.state_name(s));
  empty_ = a.state_name(a.start);
}

void Speaker::name_elements(const tasks::Task& task) {
  const auto elements = task.elements();
  if (!elements)
    throw Error("this model does not read a group, so its answers have no ids",
                "--ids is for models of groups, such as `lrnn compile --group S3`");
  for (size_t t = 0; t < names_.size(); ++t)
    if (const int64_t id = elements->of_token[t]; id >= 0) names_[t] = std::to_string(id);
  if (const int64_t id = elements->group.find(empty_); id >= 0) empty_ = std::to_string(id);
}

std::vector<int64_t> Speaker::ask(const Tensor& in, model::State& state, mixers::Context context) {
  Tensor stream;
  if (readout_)
    context.observe = [&](const std::string& name, const Tensor& value) {
      if (name == "stream") stream = value;
    };
  const Tensor logits = run_.model->forward(in.to(run_.model->device()), state, context);
  if (readout_) return readout_->states(stream);
  const Tensor best = logits.argmax(-1).cpu().contiguous();
  return {best.data_ptr<int64_t>(), best.data_ptr<int64_t>() + best.numel()};
}

void Line::add(const std::string& answer) {
  if (json_)
    std::cout << (first_ ? opening() : ",") << Json(answer).dump();
  else
    std::cout << (first_ ? "" : " ") << answer;
  first_ = false;
}

void Line::end() {
  if (json_) std::cout << (first_ ? opening() : "") << (every_ ? "]}" : "}");
  std::cout << '\n';
  first_ = true;
}

void Line::break_off() {
  if (!first_) std::cout << '\n';
  std::cout.flush();
}

Answers::Answers(experiments::Run& run, const RunOptions& options)
    : every_(options.every),
      speaker_(run, options),
      line_(options.every, options.json),
      before_(run.task->before_word()) {}

void Answers::short_word(const std::vector<int64_t>& word) {
  words_.push_back(word);
  size_ += word.size() + before_.size();
  if (size_ >= kTokensTogether) flush();
}

void Answers::flush() {
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
    if (!every_) context.read_at = context.last_rows(1, int64_t(in.size()), 1).squeeze(1);
    model::State state;
    got = speaker_.ask(torch::tensor(in).unsqueeze(0), state, context);
  }
  size_t at = 0;
  for (const auto& w : words_) {
    if (w.empty()) {
      if (!every_) line_.add(speaker_.empty());
    } else if (!every_) {
      line_.add(speaker_.name(got[at++]));
    } else {
      at += before_.size();
      for (size_t i = 0; i < w.size(); ++i) line_.add(speaker_.name(got[at++]));
    }
    line_.end();
  }
  words_.clear();
  size_ = 0;
  std::cout.flush();
}

void Answers::begin() {
  flush();
  state_.clear();
  if (!before_.empty()) speaker_.ask(torch::tensor(before_).unsqueeze(0), state_, {});
}

void Answers::piece(const std::vector<int64_t>& tokens) {
  if (tokens.empty()) return;
  mixers::Context context;
  if (!every_) context.read_at = context.last_rows(1, int64_t(tokens.size()), 1).squeeze(1);
  const auto got = speaker_.ask(torch::tensor(tokens).unsqueeze(0), state_, context);
  last_ = got.back();
  if (every_)
    for (const int64_t answer : got) line_.add(speaker_.name(answer));
}

void Answers::end() {
  if (!every_) line_.add(speaker_.name(last_));
  line_.end();
  std::cout.flush();
}

}  // namespace lrnn::cli
