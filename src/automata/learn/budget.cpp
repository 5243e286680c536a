#include "automata/learn/budget.h"

namespace lrnn::automata {

double Metered::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

void Metered::require() const {
  if (double(asked_) >= part_ * double(words_)) throw Spent{Spent::kWords};
  if (elapsed() >= part_ * seconds_) throw Spent{Spent::kSeconds};
}

std::vector<int64_t> Metered::last(const std::vector<Question>& questions) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < questions.size();) {
    require();
    std::vector<Question> piece;
    for (size_t letters = 0; i < questions.size() && letters < kPiece; ++i) {
      letters += questions[i].after.size();
      piece.push_back(questions[i]);
    }
    asked_ += int64_t(piece.size());
    const auto answers = oracle_.last(piece);
    out.insert(out.end(), answers.begin(), answers.end());
  }
  return out;
}

std::vector<std::vector<int64_t>> Metered::every(const std::vector<Word>& words) {
  std::vector<std::vector<int64_t>> out;
  for (size_t i = 0; i < words.size();) {
    require();
    std::vector<Word> piece;
    for (size_t letters = 0; i < words.size() && letters < kPiece; ++i) {
      letters += words[i].size();
      piece.push_back(words[i]);
    }
    asked_ += int64_t(piece.size());
    for (auto& answers : oracle_.every(piece)) out.push_back(std::move(answers));
  }
  return out;
}

}  // namespace lrnn::automata
