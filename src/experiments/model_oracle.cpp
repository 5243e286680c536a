#include "experiments/model_oracle.h"

#include <algorithm>
#include <tuple>

#include "ops/torch.h"

namespace lrnn::experiments {
namespace {

using automata::kUnasked;
using automata::Question;
using torch::Tensor;

constexpr int64_t kTokensAtOnce = 8192, kRowsAtOnce = 2048, kShortestPiece = 64;
constexpr double kMostKept = 1e9;  // floats of states: 4 GB at most

std::vector<int64_t> best_of(const Tensor& logits) {
  const Tensor best = logits.argmax(-1).contiguous();
  return {best.data_ptr<int64_t>(), best.data_ptr<int64_t>() + best.numel()};
}

model::State row_of(const model::State& state, int64_t row) {
  model::State out;
  for (const auto& block : state) {
    auto& to = out.emplace_back();
    for (const auto& x : block)
      to.push_back(x.defined() ? x.slice(0, row, row + 1).clone() : Tensor());
  }
  return out;
}

}  // namespace

ModelOracle::ModelOracle(model::Model& model, const tasks::Task& task)
    : model_(model), letters_(task.letters()), before_(task.before_word()), own_(task.followed()) {
  empty_ = kUnasked;
  if (own_) empty_ = own_->answer[size_t(own_->automaton.start)];
  // Without an automaton of its own the task still says what it answers at first.
  for (int64_t t = 0; !own_ && t < task.vocabulary() && empty_ < 0; ++t)
    if (task.word(t) == task.empty_answer()) empty_ = t;
}

bool ModelOracle::asks(const Word& before, const Word& after) const {
  if (!own_) return true;
  int64_t s = own_->automaton.start;
  for (const auto* part : {&before, &after})
    for (const int64_t x : *part) s = own_->automaton.step(s, x);
  return own_->answer[size_t(s)] >= 0;
}

Tensor ModelOracle::tokens(const std::vector<const Word*>& words, size_t from, size_t to) const {
  Tensor out = torch::empty({int64_t(words.size()), int64_t(to - from)}, torch::kInt64);
  auto* next = out.data_ptr<int64_t>();
  for (const auto* word : words)
    for (size_t t = from; t < to; ++t) *next++ = letters_[size_t((*word)[t])];
  return out;
}

model::State ModelOracle::held(const std::vector<Word>& words) const {
  // Equal words stand side by side.
  std::vector<const model::State*> distinct;
  std::vector<int64_t> which;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i == 0 || words[i] != words[i - 1]) distinct.push_back(&kept_.at(words[i]));
    which.push_back(int64_t(distinct.size()) - 1);
  }
  model::State out = *distinct[0];
  const Tensor rows = torch::tensor(which);
  for (size_t b = 0; b < out.size(); ++b)
    for (size_t i = 0; i < out[b].size(); ++i) {
      if (!out[b][i].defined()) continue;
      std::vector<Tensor> parts;
      for (const auto* state : distinct) parts.push_back((*state)[b][i]);
      out[b][i] = torch::cat(parts).index_select(0, rows);
    }
  return out;
}

void ModelOracle::keep(std::vector<Word> words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::erase_if(words, [&](const Word& w) { return kept_.contains(w); });
  if (words.empty()) return;
  if (words[0].empty()) {
    model::State state;
    if (!before_.empty()) model_.forward(torch::tensor(before_).unsqueeze(0), state);
    kept_.emplace(Word{}, std::move(state));
    words.erase(words.begin());
  }
  // One letter behind a shorter word, lengths in order.
  std::vector<Word> shorter;
  for (const auto& w : words) shorter.emplace_back(w.begin(), w.end() - 1);
  if (!shorter.empty()) keep(shorter);
  std::stable_sort(words.begin(), words.end(),
                   [](const Word& a, const Word& b) { return a.size() < b.size(); });
  for (size_t first = 0; first < words.size();) {
    size_t last = first;
    std::vector<Word> before;
    std::vector<const Word*> rows;
    for (; last < words.size() && words[last].size() == words[first].size() &&
           int64_t(rows.size()) < kRowsAtOnce;
         ++last) {
      before.emplace_back(words[last].begin(), words[last].end() - 1);
      rows.push_back(&words[last]);
    }
    auto state = held(before);
    model_.forward(tokens(rows, words[first].size() - 1, words[first].size()), state);
    for (size_t i = first; i < last; ++i)
      kept_.emplace(words[i], row_of(state, int64_t(i - first)));
    first = last;
  }
}

std::vector<int64_t> ModelOracle::last(const std::vector<Question>& questions) {
  const torch::InferenceMode no_gradients;
  if (double(kept_.size()) * double(model_.state_size(1)) > kMostKept) kept_.clear();
  std::vector<int64_t> out(questions.size(), kUnasked);
  // Sorted by shape, then by what stands before: a pass reads rows of one shape.
  std::vector<size_t> order;
  std::vector<Word> before;
  for (size_t i = 0; i < questions.size(); ++i)
    if (asks(questions[i].before, questions[i].after)) {
      order.push_back(i);
      before.push_back(questions[i].before);
    }
  keep(before);
  const auto shape = [&](size_t i) {
    return std::pair(questions[i].before.size(), questions[i].after.size());
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tie(questions[a].before, questions[a].after) <
           std::tie(questions[b].before, questions[b].after);
  });
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shape(a) < shape(b); });
  for (size_t first = 0; first < order.size();) {
    const auto [_, length] = shape(order[first]);
    const int64_t most = std::clamp<int64_t>(kTokensAtOnce / int64_t(length), 1, kRowsAtOnce);
    std::vector<Word> beginnings;
    std::vector<const Word*> rows;
    size_t last = first;
    for (; last < order.size() && shape(order[last]) == shape(order[first]) &&
           int64_t(rows.size()) < most;
         ++last) {
      beginnings.push_back(questions[order[last]].before);
      rows.push_back(&questions[order[last]].after);
    }
    auto state = held(beginnings);
    mixers::Context context;
    const auto count = int64_t(rows.size());
    context.read_at = context.last_rows(count, int64_t(length), 1).squeeze(1);
    const auto best = best_of(model_.forward(tokens(rows, 0, length), state, context));
    for (size_t i = first; i < last; ++i) out[order[i]] = best[i - first];
    first = last;
  }
  return out;
}

std::vector<std::vector<int64_t>> ModelOracle::every(const std::vector<Word>& words) {
  const torch::InferenceMode no_gradients;
  std::vector<std::vector<int64_t>> out(words.size());
  keep({{}});
  std::vector<size_t> order(words.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return words[a].size() < words[b].size(); });
  for (size_t first = 0; first < order.size();) {
    const size_t length = words[order[first]].size();
    std::vector<const Word*> rows;
    size_t last = first;
    for (; last < order.size() && words[order[last]].size() == length &&
           int64_t(rows.size()) < kTokensAtOnce / kShortestPiece;
         ++last)
      rows.push_back(&words[order[last]]);
    auto state = held(std::vector<Word>(rows.size()));
    const auto piece = size_t(kTokensAtOnce / int64_t(rows.size()));
    for (size_t t = 0; t < length; t += piece) {
      const size_t end = std::min(length, t + piece);
      const auto best = best_of(model_.forward(tokens(rows, t, end), state));
      for (size_t i = first; i < last; ++i) {
        const auto from = best.begin() + int64_t((i - first) * (end - t));
        out[order[i]].insert(out[order[i]].end(), from, from + int64_t(end - t));
      }
    }
    first = last;
  }
  // What the task never asks is no answer, whatever the model says there.
  for (size_t i = 0; own_ && i < words.size(); ++i) {
    int64_t s = own_->automaton.start;
    for (size_t t = 0; t < words[i].size(); ++t) {
      s = own_->automaton.step(s, words[i][t]);
      if (own_->answer[size_t(s)] < 0) out[i][t] = kUnasked;
    }
  }
  return out;
}

}  // namespace lrnn::experiments
