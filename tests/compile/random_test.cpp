#include "base/random.h"

#include <gtest/gtest.h>

#include "compile/certificate.h"
#include "tests/compile/suite.h"

// Automata that nobody chose: 200 of at most eight states and three letters, every one compiled
// and followed through the real model on words of up to 300 letters, the largest on one of 300, the
// smaller ones certified.
// The oracle is the table that was drawn here; tests/scripts/oracle.py does the same with somebody
// else's code.
namespace lrnn::compile {
namespace {

constexpr uint64_t kAutomata = 200, kWords = 4;
constexpr int64_t kLetters = 3, kLongest = 300, kSoonCertified = 1000000, kSoonRun = 20000000;

struct Drawn {
  std::vector<std::vector<int64_t>> next;
  explicit Drawn(Random& random) : next(size_t(random.between(2, 8))) {
    for (auto& row : next)
      for (int64_t x = 0; x < kLetters; ++x)
        row.push_back(random.between(0, int64_t(next.size()) - 1));
  }
  std::string after(const std::vector<int64_t>& word) const {
    size_t s = 0;
    for (const int64_t x : word) s = size_t(next[s][size_t(x)]);
    return cat("q", s);
  }
  automata::Automaton automaton() const {
    auto a = automata::Automaton::from(int64_t(next.size()), kLetters, [&](int64_t s, int64_t x) {
      return next[size_t(s)][size_t(x)];
    });
    for (size_t s = 0; s < next.size(); ++s) a.state_names.push_back(cat("q", s));
    return automata::reachable(a);
  }
};

class RandomAutomata : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomAutomata, AreFollowed) {
  torch::InferenceMode no_gradients;
  for (uint64_t i = GetParam(); i < kAutomata; i += 10) {
    Random random(17, 0, i);
    const Drawn drawn(random);
    const auto c = compile({cat("random ", i), drawn.automaton(), false}, {});
    const auto model = model_of(c->weights);
    // Every case of a table goes through its whole layer: minutes for the deepest cascades.
    if (model->parameter_count() < kSoonCertified) {
      EXPECT_EQ(certify(*c, *model).first_wrong(), "") << i;
    }
    const auto symbols = c->subject.automaton.symbols;
    const bool small = model->parameter_count() < kSoonRun;
    for (uint64_t w = 0; w < (small ? kWords : 1); ++w) {
      std::vector<int64_t> word(size_t(w ? random.between(1, kLongest) : kLongest));
      for (auto& x : word) x = random.between(0, kLetters - 1);
      model::State state;
      const auto best = model->forward(torch::tensor(word).unsqueeze(0), state).argmax(-1)[0];
      for (const size_t n : {size_t(1), word.size() / 2 + 1, word.size()}) {
        const int64_t label = best[int64_t(n) - 1].item<int64_t>() - symbols;
        ASSERT_GE(label, 0);
        ASSERT_EQ(c->labels.names[size_t(label)],
                  drawn.after({word.begin(), word.begin() + int64_t(n)}))
            << "automaton " << i << ", " << n << " letters";
      }
    }
    if (small) {
      EXPECT_EQ(run(*c, kLongest).wrong, 0) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tenths, RandomAutomata, testing::Range<uint64_t>(0, 10));

}  // namespace
}  // namespace lrnn::compile
