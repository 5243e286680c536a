#include "tasks/keys.h"

// Tokens drawn alike, each to be guessed from those before it. Nothing can be learnt here: this is
// the task of a model that came without data (`lrnn import`), which knows its vocabulary and no
// more. It is opened, looked into and trained on elsewhere like any other.
namespace lrnn::tasks {
namespace {

class Tokens final : public Task {
 public:
  explicit Tokens(int64_t vocabulary) : vocabulary_(vocabulary) {}
  int64_t vocabulary() const override { return vocabulary_; }
  double chance() const override { return 1 / double(vocabulary_); }
  Score score() const override { return Score::kPrefix; }
  std::string word(int64_t token) const override { return cat(token); }

  Example sample(uint64_t seed, Split split, uint64_t index, Range length) const override {
    expect_length(length, 1);
    Random random = stream(seed, split, index);
    Example out;
    out.length = random.between(length.lo, length.hi);
    int64_t next = random.between(0, vocabulary_ - 1);
    for (int64_t t = 0; t < out.length; ++t) {
      out.input.push_back(next);
      out.target.push_back(next = random.between(0, vocabulary_ - 1));
    }
    return out;
  }

 private:
  int64_t vocabulary_;
};

struct TokensConfig {
  int64_t vocabulary = 256;
  TrainKeys<64, 64> train;
  EvalKeys<64, 64, 64> eval;
  template <class Visit> void fields(Visit&& visit) {
    visit("vocabulary", vocabulary, "how many tokens there are", between(1, 1e9));
    visit_both(visit, train, eval, "what it is trained on; a length counts tokens");
  }
  std::shared_ptr<Task> make() const { return std::make_shared<Tokens>(vocabulary); }
};

}  // namespace

Entry entry_tokens(const char* name, const char* about) { return entry<TokensConfig>(name, about); }

}  // namespace lrnn::tasks
