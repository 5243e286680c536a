#include "compile/long_run.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "compile/words.h"
#include "ops/torch.h"

namespace lrnn::compile {
namespace {

using torch::Tensor;

constexpr int64_t kChunk = 4096;  // tokens of one forward, all rows together
constexpr size_t kShown = 200;    // letters of a mistake that are told
constexpr size_t kStructured = 24;
constexpr int64_t kCovering = 4000;  // short words at most
// Words of each length, for models that nothing is proved of: so many tokens, but as many words.
constexpr int64_t kAtEachLength = 16384, kFewest = 16, kMost = 256;

// Several words at once, read in pieces; the model's state is all that is carried.
class Rows {
 public:
  Rows(model::Model& model, const automata::Automaton& a, const Tokens& tokens, LongRun& out)
      : model_(model), a_(a), tokens_(tokens), out_(out) {}

  void read(std::vector<Word> words, int64_t length) {
    if (words.empty() || length < 1) return;
    const auto rows = int64_t(words.size());
    std::vector<int64_t> states(words.size(), a_.start);
    model::State state;
    if (!tokens_.before.empty())
      model_.forward(torch::tensor(tokens_.before).unsqueeze(0).expand({rows, -1}).contiguous(),
                     state);
    std::vector<std::vector<int64_t>> recent(words.size());
    std::vector<bool> failed(words.size());
    for (int64_t t = 0; t < length;) {
      const int64_t n = std::min(std::max<int64_t>(kChunk / rows, 64), length - t);
      Tensor in = torch::empty({rows, n}, torch::kInt64), want = torch::empty_like(in);
      std::vector<std::vector<int64_t>> letters(words.size());
      for (size_t r = 0; r < words.size(); ++r)
        for (int64_t i = 0; i < n; ++i) {
          const int64_t x = words[r].letter(t + i, states[r]);
          letters[r].push_back(x);
          states[r] = a_.step(states[r], x);
          in.data_ptr<int64_t>()[int64_t(r) * n + i] = tokens_.symbol[size_t(x)];
          want.data_ptr<int64_t>()[int64_t(r) * n + i] = tokens_.answer[size_t(states[r])];
        }
      const Tensor got = compare(model_.forward(in, state), want);
      if (rows == 1 && length >= out_.longest) {
        if (t == 0) out_.first_margin = last_compared_;
        out_.last_margin = last_compared_;
      }
      for (size_t r = 0; r < words.size(); ++r) {
        if (!failed[r])
          failed[r] =
              find(words[r].name, got[int64_t(r)], want[int64_t(r)], letters[r], recent[r], t);
        if (letters[r].size() > kShown)
          letters[r].erase(letters[r].begin(), letters[r].end() - int64_t(kShown));
        recent[r].insert(recent[r].end(), letters[r].begin(), letters[r].end());
        if (recent[r].size() > kShown)
          recent[r].erase(recent[r].begin(), recent[r].end() - int64_t(kShown));
      }
      t += n;
      // What comes after a mistake says nothing new.
      if (std::find(failed.begin(), failed.end(), false) == failed.end()) length = t;
    }
    for (const auto& w : words) count(w.name, length);
  }

  // Short words end to end, each from the beginning.
  void read_packed(const std::string& name, const std::vector<std::vector<int64_t>>& words) {
    const int64_t before = out_.tokens;
    for (size_t first = 0; first < words.size();) {
      std::vector<int64_t> in, want, cu = {0};
      std::vector<size_t> starts;
      size_t last = first;
      for (; last < words.size() && int64_t(in.size()) < kChunk; ++last) {
        in.insert(in.end(), tokens_.before.begin(), tokens_.before.end());
        want.resize(in.size(), -1);
        starts.push_back(in.size());
        int64_t s = a_.start;
        for (const int64_t x : words[last]) {
          in.push_back(tokens_.symbol[size_t(x)]);
          want.push_back(tokens_.answer[size_t(s = a_.step(s, x))]);
        }
        cu.push_back(int64_t(in.size()));
      }
      model::State state;
      mixers::Context context;
      context.cu_seqlens = torch::tensor(cu);
      const Tensor all = torch::tensor(want).unsqueeze(0);
      const Tensor logits = model_.forward(torch::tensor(in).unsqueeze(0), state, context);
      const Tensor got = compare(logits, all)[0];
      for (size_t w = first; w < last; ++w) {
        const auto from = int64_t(starts[w - first]), to = cu[w - first + 1];
        find(name, got.slice(0, from, to), all[0].slice(0, from, to), words[w], {}, 0);
        out_.tokens += to - from;
        out_.longest = std::max(out_.longest, to - from);
      }
      first = last;
    }
    out_.words += int64_t(words.size());
    out_.kinds.emplace_back(name, out_.tokens - before);
  }

 private:
  // What the model answers; keeps the least margin.
  Tensor compare(const Tensor& logits, const Tensor& want) {
    const Tensor asked = want.clamp_min(0).unsqueeze(-1);
    const Tensor right = logits.gather(-1, asked).squeeze(-1);
    const Tensor others = logits.scatter(-1, asked, -1e30).amax(-1);
    const Tensor margin = (right - others).masked_fill(want < 0, 1e30);
    last_compared_ = margin.min().item<double>();
    out_.margin = std::min(out_.margin, last_compared_);
    return logits.argmax(-1);
  }

  bool find(const std::string& name, const Tensor& got, const Tensor& want,
            const std::vector<int64_t>& letters, const std::vector<int64_t>& recent, int64_t t) {
    const Tensor bad = ((got != want) & (want >= 0)).nonzero();
    out_.wrong += bad.size(0);
    if (bad.size(0) == 0) return false;
    const int64_t i = bad[0][0].item<int64_t>();
    if (out_.first && out_.first->position <= t + i + 1) return true;
    LongRun::Mistake m{name, t + i + 1, recent, want[i].item<int64_t>(), got[i].item<int64_t>()};
    m.letters.insert(m.letters.end(), letters.begin(), letters.begin() + i + 1);
    if (m.letters.size() > kShown)
      m.letters.erase(m.letters.begin(), m.letters.end() - int64_t(kShown));
    out_.first = std::move(m);
    return true;
  }

  void count(const std::string& name, int64_t length) {
    out_.tokens += length;
    out_.longest = std::max(out_.longest, length);
    ++out_.words;
    out_.kinds.emplace_back(name, length);
  }

  model::Model& model_;
  const automata::Automaton& a_;
  const Tokens& tokens_;
  LongRun& out_;
  double last_compared_ = 0;  // the least margin of the last comparison
};

std::vector<bool> asked(const Tokens& tokens) {
  std::vector<bool> out;
  for (const int64_t token : tokens.answer) out.push_back(token >= 0);
  return out;
}

// Lengths 1, 2, 3, … and then a fourth more each time, until one is wrong.
void read_growing(Rows& rows, const automata::Automaton& a, const Tokens& tokens,
                  const LongRunOptions& options, const LongRun& out) {
  EndingWords words(a, asked(tokens), options.seed);
  for (int64_t length = 1; length <= options.tokens / kFewest;
       length += std::max<int64_t>(1, length / 4)) {
    if (out.first && out.first->position <= length) return;
    std::vector<std::vector<int64_t>> some;
    const auto count = std::clamp<int64_t>(kAtEachLength / length, kFewest, kMost);
    for (int64_t i = 0; i < count; ++i) {
      auto word = words.next(size_t(length));
      if (word.empty()) break;
      some.push_back(std::move(word));
    }
    if (!some.empty()) rows.read_packed(cat(some.size(), " words of length ", length), some);
  }
}

}  // namespace

double LongRun::measured_t_safe() const {
  const double lost = first_margin - last_margin;
  if (longest == 0 || lost <= 0) return std::numeric_limits<double>::infinity();
  return std::max(0.0, double(longest) * first_margin / lost);
}

LongRun long_run(model::Model& model, const automata::Automaton& a, const Tokens& tokens,
                 const LongRunOptions& options) {
  torch::InferenceMode no_gradients;
  LongRun out;
  Rows rows(model, a, tokens, out);
  const auto most = size_t(std::clamp<int64_t>(options.tokens / 8, 100, kCovering));
  rows.read_packed("short words through every state", covering_words(a, options.seed, most));
  if (options.growing) {
    read_growing(rows, a, tokens, options, out);
    if (out.wrong) return out;
  }
  auto words = long_words(a, options.seed);
  rows.read({words[1]}, options.tokens);
  rows.read({words[0]}, options.tokens / 2);
  rows.read(structured_words(a, options.seed, kStructured), options.tokens / 64);
  return out;
}

LongRun short_run(model::Model& model, const automata::Automaton& a, const Tokens& tokens,
                  int64_t length, uint64_t seed) {
  torch::InferenceMode no_gradients;
  LongRun out;
  Rows rows(model, a, tokens, out);
  auto covering = covering_words(a, seed, kMost);
  std::erase_if(covering, [&](const auto& word) { return int64_t(word.size()) > length; });
  if (!covering.empty()) rows.read_packed("short words through every state", covering);
  EndingWords ending(a, asked(tokens), seed);
  std::vector<std::vector<int64_t>> some;
  for (int64_t i = 0; i < kFewest; ++i)
    if (auto word = ending.next(size_t(length)); !word.empty()) some.push_back(std::move(word));
  if (!some.empty()) rows.read_packed(cat(some.size(), " words of length ", length), some);
  for (auto& word : long_words(a, seed)) rows.read({std::move(word)}, length);
  rows.read(structured_words(a, seed, kStructured), length);
  return out;
}

}  // namespace lrnn::compile
