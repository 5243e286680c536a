#include <sentencepiece_trainer.h>

#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "text/sentence_piece.h"

namespace lrnn::text {
namespace {

constexpr size_t kLongest = 4000;  // bytes of a line; the library drops longer ones

// Lines as the library wants them: short, UTF-8, without the characters that it uses itself.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const NextLine& next) : next_(next) { Next(); }
  bool done() const override { return done_; }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }
  void Next() override {
    for (value_.clear(); value_.empty() && !done_;) {
      if (at_ >= line_.size()) {
        done_ = !next_(line_);
        at_ = 0;
      } else {
        take();
      }
    }
  }

 private:
  // The next part of the line: up to a character that is left out, or to a space when it is long.
  void take() {
    while (at_ < line_.size()) {
      const auto rest = std::string_view(line_).substr(at_);
      const size_t n = bytes_of_character(rest);
      if (n == 0 || rest[0] == '\0' || rest.starts_with("\u2581")) {
        at_ += std::max<size_t>(n, 1);
        return;
      }
      if (value_.size() + n > kLongest || (value_.size() > kLongest / 2 && rest[0] == ' ')) return;
      value_.append(rest.substr(0, n));
      at_ += n;
    }
  }

  const NextLine& next_;
  std::string line_, value_;
  size_t at_ = 0;
  bool done_ = false;
};

}  // namespace

std::string train_sentence_piece(const SentencePieceTraining& how, const NextLine& next) {
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", how.kind},
      {"vocab_size", cat(how.vocabulary)},
      {"byte_fallback", "true"},
      {"split_digits", "true"},
      {"allow_whitespace_only_pieces", "true"},
      {"remove_extra_whitespaces", "false"},
      {"normalization_rule_name", "identity"},
      {"character_coverage", "0.99995"},
      {"max_sentencepiece_length", "16"},
      // The model remembers it, and unigram's sums depend on it: the same on every machine.
      {"num_threads", "4"},
      {"minloglevel", "2"}};
  Lines lines(next);
  if (lines.done()) throw Error("there is no text to train on");
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &lines, &model);
  if (!status.ok())
    throw Error(cat("the tokenizer could not be trained: ", status.message()),
                "a smaller --vocab, or more text, often helps");
  return model;
}

}  // namespace lrnn::text
