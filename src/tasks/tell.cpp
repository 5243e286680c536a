#include "tasks/tell.h"

#include "tasks/keys.h"

namespace lrnn::tasks {
namespace {

class Told final : public Task {
 public:
  explicit Told(Tell story) : story_(std::move(story)) {}
  int64_t vocabulary() const override { return int64_t(story_.words.size()); }
  double chance() const override { return story_.answers ? 1.0 / double(story_.answers) : 0; }
  Score score() const override { return story_.score; }
  std::string word(int64_t token) const override { return story_.words[size_t(token)]; }

  Example sample(uint64_t seed, Split split, uint64_t index, Range length) const override {
    expect_length(length, story_.shortest);
    Random random = stream(seed, split, index);
    return story_.draw(random, length);
  }

  // Each answer stands behind its question: at the end of the line nobody could match them up.
  std::string text(const Example& example) const override {
    std::string out;
    for (size_t t = 0; t < example.input.size(); ++t) {
      out += (t ? " " : "") + word(example.input[t]);
      if (example.target[t] < 0) continue;
      out += " -> " + word(example.target[t]) + (t + 1 < example.input.size() ? " |" : "");
    }
    return out;
  }

 private:
  Tell story_;
};

}  // namespace

std::shared_ptr<Task> tell(Tell story) { return std::make_shared<Told>(std::move(story)); }

}  // namespace lrnn::tasks
