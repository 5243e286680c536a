#include "base/limits.h"

#include <algorithm>

#include "base/error.h"

namespace lrnn {
namespace {

// 100000 and not 1e+05.
std::string bound(double value) {
  const auto whole = static_cast<int64_t>(value);
  return static_cast<double>(whole) == value ? cat(whole) : cat(value);
}

template <class T> std::string first_problem(const Limits& limits, const std::vector<T>& values) {
  for (const T value : values)
    if (auto problem = limits.problem(value); !problem.empty()) return problem;
  return {};
}

}  // namespace

Limits::Limits(std::initializer_list<const char*> words) : words_(words.begin(), words.end()) {
  for (const auto& word : words_) text_ += (text_.empty() ? "one of " : ", ") + word;
  got_ = "; got ";
}

Limits::Limits(std::initializer_list<Range> ranges) : ranges_(ranges) {
  for (const auto& r : ranges_)
    text_ += cat(text_.empty() ? "" : " or ", "[", r.lo, ", ", r.hi, "]");
}

bool Limits::holds(double value) const {
  return (low_.included ? value >= low_.value : value > low_.value) &&
         (high_.included ? value <= high_.value : value < high_.value);
}

const std::string& Limits::text_for(double value) const {
  const auto& text = value < low_.value ? below_ : above_;
  return text.empty() ? text_ : text;
}

std::string Limits::problem(bool) const { return {}; }

std::string Limits::problem(int64_t value) const {
  const auto number = static_cast<double>(value);
  return holds(number) ? "" : cat(must_, text_for(number), got_, value);
}

std::string Limits::problem(double value) const {
  return holds(value) ? "" : cat(must_, text_for(value), got_, value);
}

std::string Limits::problem(const std::string& value) const {
  if (words_.empty() || std::find(words_.begin(), words_.end(), value) != words_.end()) return {};
  return cat(must_, text_, got_, "'", value, "'");
}

std::string Limits::problem(const Range& value) const {
  if (ranges_.empty() && !text_.empty()) {
    if (value.lo > value.hi)
      return cat("must be [low, high] with low <= high, got [", value.lo, ", ", value.hi, "]");
    const auto low = problem(value.lo);
    return low.empty() ? problem(value.hi) : low;
  }
  if (ranges_.empty() || std::find(ranges_.begin(), ranges_.end(), value) != ranges_.end())
    return {};
  return cat(must_, text_, got_, "[", value.lo, ", ", value.hi, "]");
}

std::string Limits::problem(const std::vector<int64_t>& values) const {
  return first_problem(*this, values);
}
std::string Limits::problem(const std::vector<double>& values) const {
  return first_problem(*this, values);
}

Limits Limits::interval(End low, End high, std::string text, const char* must, const char* got) {
  Limits out;
  out.low_ = low, out.high_ = high, out.text_ = std::move(text), out.must_ = must, out.got_ = got;
  return out;
}

Limits Limits::at_most(double high) const {
  Limits out = *this;
  out.high_ = {high};
  out.below_ = text_, out.above_ = "at most " + bound(high);
  out.text_ = cat(text_, " and ", out.above_);
  return out;
}

Limits at_least(double low) {
  return Limits::interval({low}, {Limits::kNoEnd}, "at least " + bound(low));
}

Limits at_least_or_0(double low, const char* meaning) {
  return Limits::interval({0}, {Limits::kNoEnd},
                          cat("at least ", bound(low), ", or 0 for ", meaning), "must be ",
                          "; got ");
}

Limits above(double low) {
  return Limits::interval({low, false}, {Limits::kNoEnd}, "above " + bound(low));
}

Limits positive() { return Limits::interval({0, false}, {Limits::kNoEnd}, "positive"); }

Limits between(double low, double high) {
  return Limits::interval({low}, {high}, cat("between ", bound(low), " and ", bound(high)));
}

Limits above_and_at_most(double low, double high) {
  return Limits::interval({low, false}, {high},
                          cat("above ", bound(low), " and at most ", bound(high)));
}

Limits from_to_below(double low, double high) {
  return Limits::interval({low}, {high, false}, cat("in [", bound(low), ", ", bound(high), ")"),
                          "must lie ");
}

}  // namespace lrnn
