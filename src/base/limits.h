#pragma once
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

namespace lrnn {

// Both ends included. Written [3, 40], or 128 for [128, 128].
struct Range {
  int64_t lo = 0, hi = 0;
  bool operator==(const Range&) const = default;
};

// The values that a key takes, said once, where the key is declared: reading refuses all others,
// help and reference show them.
//
//   visit("steps", steps, "optimiser updates", at_least(1));
//   visit("schedule", schedule, "after the warm-up", {"cosine", "constant"});
//   visit("range", range, "of the eigenvalues", {Range{0, 1}, Range{-1, 1}});
class Limits {
 public:
  Limits() = default;                                // every value of the key's type
  Limits(std::initializer_list<const char*> words);  // one of these
  Limits(std::initializer_list<Range> ranges);       // one of these

  // For people, as it follows "must be": "at least 1". Empty where there are no limits.
  const std::string& text() const { return text_; }
  // For programs.
  const std::vector<std::string>& words() const { return words_; }
  const std::vector<Range>& ranges() const { return ranges_; }
  struct End {
    double value;  // of no end: infinite
    bool included = true;
  };
  // The same with an upper end.
  Limits at_most(double high) const;
  const End& low() const { return low_; }
  const End& high() const { return high_; }

  static constexpr double kNoEnd = std::numeric_limits<double>::infinity();
  static Limits interval(End low, End high, std::string text, const char* must = "must be ",
                         const char* got = ", got ");

  // "must be at least 1, got 0", or nothing. Of a list every number is looked at, of a range both
  // ends and their order.
  std::string problem(bool value) const;
  std::string problem(int64_t value) const;
  std::string problem(double value) const;
  std::string problem(const std::string& value) const;
  std::string problem(const Range& value) const;
  std::string problem(const std::vector<int64_t>& values) const;
  std::string problem(const std::vector<double>& values) const;

 private:
  bool holds(double value) const;
  const std::string& text_for(double value) const;

  std::vector<std::string> words_;
  std::vector<Range> ranges_;
  End low_{-kNoEnd}, high_{kNoEnd};
  std::string text_, below_, above_;  // what is said of smaller and larger values, if not text_
  const char *must_ = "must be ", *got_ = ", got ";
};

Limits at_least(double low);                            // low, low + 1, …
Limits at_least_or_0(double low, const char* meaning);  // … or 0, which stands for `meaning`
Limits above(double low);
Limits positive();
Limits between(double low, double high);            // both included
Limits above_and_at_most(double low, double high);  // (low, high]
Limits from_to_below(double low, double high);      // [low, high)

}  // namespace lrnn
