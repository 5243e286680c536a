#include <algorithm>

#include "tasks/keys.h"
#include "tasks/tell.h"

// Multi-query associative recall (Arora et al. 2023): pairs of a key and a value come first; later
// each key comes once more, and the model says its value. What a state remembers against how far
// it counts is the trade-off to measure.
namespace lrnn::tasks {
namespace {

constexpr int64_t kMostRecall = 100000;

// Distinct numbers 1 .. n, by their weight: `near` makes x as likely as 1/x, which is the published
// power law (exponent 0.01 - 1) in whole numbers, so that every machine draws the same.
std::vector<int64_t> draw_gaps(Random& random, int64_t n, int64_t count, bool near) {
  std::vector<uint64_t> weight(static_cast<size_t>(n));
  uint64_t total = 0;
  for (int64_t x = 1; x <= n; ++x)
    total += weight[size_t(x - 1)] = near ? (uint64_t{1} << 40) / uint64_t(x) : 1;
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t at = random.below(total);
    size_t x = 0;
    while (at >= weight[x]) at -= weight[x++];
    total -= weight[x];
    weight[x] = 0;
    out.push_back(int64_t(x) + 1);
  }
  return out;
}

struct RecallConfig {
  int64_t keys = 64, values = 64, pairs = 8;
  std::string gaps = "near", filler = "random";
  TrainKeys<64, 64> train;
  EvalKeys<64, 256, 2048> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("keys", keys, "different keys there are", between(1, kMostRecall));
    visit("values", values, "different values there are", between(1, kMostRecall));
    visit("pairs", pairs, "pairs to remember, and questions asked; at most as many as keys",
          at_least(1));
    visit("gaps", gaps, "how far a question is from the pairs: mostly near (as published), or any",
          {"near", "uniform"});
    visit("filler", filler, "what stands between: values at random, or nothing",
          {"random", "blank"});
    visit_both(visit, train, eval, "what it is trained on; a length counts tokens");
  }
  void check(const Section& at) const {
    at.require(pairs <= keys, "pairs", "must be between 1 and the number of keys (", keys,
               "), got ", pairs);
    require_length(at.child("train"), train.length);
    require_length(at.child("eval"), eval.length);
  }
  void require_length(const Section& at, Range length) const {
    const std::string problem = lengths(shortest()).problem(length);
    at.require(problem.empty(), "length", problem);
  }
  // Pairs, then at least as many places for questions: they stand on every second token.
  int64_t shortest() const { return 4 * pairs; }

  Example draw(Random& random, Range length) const {
    const int64_t n = random.between(length.lo, length.hi), begin = 2 * pairs;
    const auto any_value = [&] { return 1 + keys + random.between(0, values - 1); };
    std::vector<int64_t> all(static_cast<size_t>(keys));
    for (int64_t k = 0; k < keys; ++k) all[size_t(k)] = 1 + k;
    Example out;
    out.length = n;
    for (int64_t i = 0; i < pairs; ++i) {
      std::swap(all[size_t(i)], all[size_t(random.between(i, keys - 1))]);
      out.input.push_back(all[size_t(i)]);
      out.input.push_back(any_value());
    }
    for (int64_t t = begin; t < n; ++t) out.input.push_back(filler == "random" ? any_value() : 0);
    out.target.assign(out.input.size(), -1);
    const auto places = draw_gaps(random, (n - begin) / 2, pairs, gaps == "near");
    for (int64_t i = 0; i < pairs; ++i) {
      const auto at = size_t(begin + 2 * (places[size_t(i)] - 1));
      out.input[at] = out.input[size_t(2 * i)];
      out.target[at] = out.input[size_t(2 * i + 1)];
    }
    const auto last = size_t(begin + 2 * (*std::max_element(places.begin(), places.end()) - 1));
    out.input.resize(last + 1);
    out.target.resize(last + 1);
    return out;
  }

  std::shared_ptr<Task> make() const {
    Tell story;
    story.words = {"_"};
    for (int64_t k = 1; k <= keys; ++k) story.words.push_back(cat("k", k));
    for (int64_t v = 1; v <= values; ++v) story.words.push_back(cat("v", v));
    story.score = Score::kPrefix;
    story.shortest = shortest();
    story.draw = [c = *this](Random& random, Range length) { return c.draw(random, length); };
    return tell(std::move(story));
  }
};

}  // namespace

Entry entry_recall(const char* name, const char* about) { return entry<RecallConfig>(name, about); }

}  // namespace lrnn::tasks
