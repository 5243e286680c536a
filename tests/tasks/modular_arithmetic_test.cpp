#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "tasks/task.h"

namespace lrnn::tasks {
namespace {

const auto arithmetic = make(Section::from_text("name: modular_arithmetic"));

// A reader of the printed words by recursive descent, as a calculator would be written:
//   sum = product { ("+" | "-") product },  product = number { "*" number }
class Calculator {
 public:
  Calculator(const std::string& text, int64_t modulus) : in_(text), modulus_(modulus) { next(); }
  int64_t value() {
    const int64_t v = sum();
    EXPECT_EQ(word_, "=");
    next();
    EXPECT_EQ(word_, "->");
    return (v % modulus_ + modulus_) % modulus_;
  }

 private:
  void next() { in_ >> word_; }
  int64_t number() {
    const int64_t v = std::stoll(word_);
    next();
    return v;
  }
  int64_t product() {
    int64_t v = number();
    while (word_ == "*") {
      next();
      v = v * number() % modulus_;
    }
    return v;
  }
  int64_t sum() {
    int64_t v = product();
    while (word_ == "+" || word_ == "-") {
      const bool plus = word_ == "+";
      next();
      v += plus ? product() : -product();
    }
    return v;
  }

  std::istringstream in_;
  std::string word_;
  int64_t modulus_;
};

int64_t last_number(const std::string& text) {
  return std::stoll(text.substr(text.find_last_of(' ')));
}

TEST(ModularArithmetic, HasThePublishedNumbers) {
  EXPECT_EQ(arithmetic->vocabulary(), 10);
  EXPECT_EQ(arithmetic->chance(), 0.2);
  EXPECT_EQ(arithmetic->score(), Score::kAnswer);
  EXPECT_EQ(arithmetic->train_length, (Range{3, 40}));
  EXPECT_EQ(arithmetic->eval_length, (Range{40, 256}));
  EXPECT_EQ(arithmetic->eval_samples, 8192);
}

TEST(ModularArithmetic, AgreesWithACalculator) {
  for (const int64_t m : {2, 3, 5, 7, 100}) {
    const auto task = make(Section::from_text(cat("name: modular_arithmetic\nmodulus: ", m)));
    EXPECT_EQ(task->vocabulary(), 5 + m);
    for (uint64_t i = 0; i < 2000; ++i) {
      const auto e = task->sample(4, i % 4 ? Split::kTrain : Split::kEval, i);
      const auto text = task->text(e);
      ASSERT_EQ(Calculator(text, m).value(), last_number(text)) << text;
      ASSERT_EQ(e.target.back(), 5 + last_number(text));
      ASSERT_EQ(e.input.back(), 4) << "the target stands on '='";
      ASSERT_EQ(static_cast<int64_t>(e.input.size()), e.length - 1);
    }
  }
}

// "2 - 3 - 3 * 2 =" is 7 2 8 2 8 3 7 4 and has target 8 (three) at position 7. Among 5^4 3^3
// words of this length it comes along soon.
TEST(ModularArithmetic, ThePublishedExample) {
  const std::vector<int64_t> wanted = {7, 2, 8, 2, 8, 3, 7, 4};
  bool found = false;
  for (uint64_t i = 0; i < 300000 && !found; ++i) {
    const auto e = arithmetic->sample(1, Split::kTrain, i, {9, 9});
    if (e.input != wanted) continue;
    found = true;
    EXPECT_EQ(e.target, (std::vector<int64_t>{-1, -1, -1, -1, -1, -1, -1, 8}));
    EXPECT_EQ(e.length, 9);
    EXPECT_EQ(arithmetic->text(e), "2 - 3 - 3 * 2 = -> 3");
  }
  EXPECT_TRUE(found);
}

// With targets: all training asks for the value after every number, too, and nothing else changes.
TEST(ModularArithmetic, TargetsAfterEveryNumber) {
  const auto all = make(Section::from_text("{name: modular_arithmetic, train: {targets: all}}"));
  for (uint64_t i = 0; i < 500; ++i) {
    const auto e = all->sample(11, Split::kTrain, i),
               last = arithmetic->sample(11, Split::kTrain, i);
    ASSERT_EQ(e.input, last.input);
    ASSERT_EQ(e.target.back(), last.target.back());
    std::string words;
    for (size_t t = 0; t + 1 < e.input.size(); ++t) {
      words += all->word(e.input[t]) + ' ';
      const bool number = e.input[t] >= 5;
      const int64_t value = number ? Calculator(words + "= ->", 5).value() : -6;
      ASSERT_EQ(e.target[t], number ? 5 + value : -1) << words;
    }
    ASSERT_EQ(all->sample(11, Split::kEval, i).target,
              arithmetic->sample(11, Split::kEval, i).target);
  }
}

TEST(ModularArithmetic, LengthsAreOddAndUniform) {
  for (const auto split : {Split::kTrain, Split::kEval}) {
    std::map<int64_t, int64_t> lengths;
    const bool train = split == Split::kTrain;
    const int64_t first = train ? 3 : 39, last = train ? 39 : 255, kinds = (last - first) / 2 + 1;
    for (int64_t i = 0; i < 300 * kinds; ++i)
      ++lengths[arithmetic->sample(8, split, static_cast<uint64_t>(i)).length];
    ASSERT_EQ(static_cast<int64_t>(lengths.size()), kinds);
    double chi2 = 0;
    for (const auto& [n, count] : lengths) {
      EXPECT_EQ(n % 2, 1);
      EXPECT_TRUE(first <= n && n <= last);
      chi2 += std::pow(double(count) - 300, 2) / 300;
    }
    const double free = double(kinds - 1);
    EXPECT_LT(chi2, free + 5 * std::sqrt(2 * free));
  }
}

TEST(ModularArithmetic, OneLengthIsRoundedAsPublished) {
  for (const auto& [asked, got] :
       {std::pair{3, 3}, {4, 3}, {5, 5}, {40, 39}, {255, 255}, {256, 255}})
    EXPECT_EQ(arithmetic->sample(1, Split::kEval, 0, {asked, asked}).length, got);
}

TEST(ModularArithmetic, LabelsAreAsUnevenAsPublished) {
  constexpr uint64_t kCount = 100000;
  const auto zeros = [](Split split, Range length) {
    int64_t n = 0;
    for (uint64_t i = 0; i < kCount; ++i)
      n += arithmetic->sample(6, split, i, length).target.back() == 5;
    return double(n) / kCount;
  };
  const double error = 5 * 0.4 / std::sqrt(double(kCount));
  // Counted over all words of one, two and three numbers; 0.2063 is the exact mean over the
  // training lengths, of which the published 0.2056 is an estimate.
  EXPECT_NEAR(zeros(Split::kTrain, {3, 3}), 1.0 / 5, error);
  EXPECT_NEAR(zeros(Split::kTrain, {5, 5}), 19.0 / 75, error);
  EXPECT_NEAR(zeros(Split::kTrain, {7, 7}), 261.0 / 1125, error);
  EXPECT_NEAR(zeros(Split::kTrain, {3, 40}), 0.2063, error);
  EXPECT_NEAR(zeros(Split::kTrain, {3, 40}), 0.2056, error);
}

TEST(ModularArithmetic, RefusesAnImpossibleModulus) {
  for (const int64_t m : {-1, 0, 1, 101}) try {
      make(Section::from_text(cat("name: modular_arithmetic\nmodulus: ", m), "x.yaml"));
      ADD_FAILURE() << m;
    } catch (const Error& e) {
      EXPECT_EQ(e.what(), cat("x.yaml:2: modulus must be between 2 and 100, got ", m));
    }
}

}  // namespace
}  // namespace lrnn::tasks
