#include <algorithm>

#include "cli/eval.h"
#include "cli/output.h"

namespace lrnn::cli {
namespace {

constexpr int64_t kLongestLength = 100'000'000;

[[noreturn]] void refuse_lengths(const std::string& text, const std::string& why) {
  throw Error(cat("--lengths must be LOW:HIGH, one length, or several with commas; ", why, " in '",
                  text, "'"),
              "such as --lengths 3:1024, --lengths 40 or --lengths 10,100,1000");
}

// Digits and nothing else: "3x", " 3", "+3" and "" are no lengths.
int64_t parse_length(const std::string& word, const std::string& text) {
  if (word.empty()) refuse_lengths(text, "a number is missing");
  if (word.find_first_not_of("0123456789") != std::string::npos)
    refuse_lengths(text, "'" + word + "' is no whole number");
  const auto digits = word.substr(std::min(word.find_first_not_of('0'), word.size() - 1));
  if (digits.size() > 9 || std::stoll(digits) > kLongestLength)
    refuse_lengths(text, "a length above " + thousands(kLongestLength) + " stands");
  if (digits == "0") refuse_lengths(text, "a length of 0 stands");
  return std::stoll(digits);
}

}  // namespace

Lengths parse_lengths(const std::string& text) {
  Lengths out;
  if (const size_t at = text.find_first_of(":-"); at != text.npos) {
    out.range = {parse_length(text.substr(0, at), text), parse_length(text.substr(at + 1), text)};
    if (out.range.lo > out.range.hi) refuse_lengths(text, "the range falls");
    return out;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    out.each.push_back(parse_length(text.substr(begin, end - begin), text));
    begin = end + 1;
  }
  std::sort(out.each.begin(), out.each.end());
  out.each.erase(std::unique(out.each.begin(), out.each.end()), out.each.end());
  if (out.each.size() == 1) out.range = {out.each[0], out.each[0]}, out.each.clear();
  return out;
}

std::string in_words(const Lengths& lengths) {
  if (lengths.each.empty())
    return lengths.range.lo == lengths.range.hi ? cat(lengths.range.lo)
                                                : cat(lengths.range.lo, " to ", lengths.range.hi);
  std::string out;
  for (size_t i = 0; i < lengths.each.size(); ++i)
    out += cat(i == 0 ? "" : i + 1 == lengths.each.size() ? " and " : ", ", lengths.each[i]);
  return out;
}

}  // namespace lrnn::cli
