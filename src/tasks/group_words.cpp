#include "tasks/group_words.h"

#include <algorithm>
#include <regex>

#include "automata/algebra/permutation.h"
#include "base/error.h"

namespace lrnn::tasks {
namespace {

constexpr int64_t kBlock = 4;  // swaps that `hard` makes one
constexpr int64_t kMostTokens = 1000;
constexpr size_t kLongestWordsName = 120;

std::smatch read_name(const std::string& name) {
  static const std::regex shape(
      "([A-Za-z0-9]+(?:_x_[A-Za-z0-9]+)*)"
      "(_only_swaps|_limit_to_([0-9]{1,3}))?"
      "(_hard|_([0-9]{1,4})_tokens(_s_token)?(_only_input)?)?");
  std::smatch parts;
  if (name.size() > kLongestWordsName || !std::regex_match(name, parts, shape))
    throw Error(cat("'", name.substr(0, kLongestWordsName), "' is not the name of a group"),
                "groups are S5, A5, Z60, D4 and products such as A4_x_Z5");
  return parts;
}

int64_t moved(int64_t id, int64_t n) {
  const auto p = automata::unrank(id, n);
  int64_t out = 0;
  for (size_t i = 0; i < p.size(); ++i) out += p[i] != int(i);
  return out;
}

// The elements of S_n that move at most `most` points.
std::vector<int64_t> restricted(const automata::Group& group, int64_t most) {
  const std::string& name = group.name();
  if (name[0] != 'S' || name.find('_') != std::string::npos)
    throw Error(cat("only permutations move points, and ", name, " is not some S_n"),
                "write S5_only_swaps, or S5_limit_to_3");
  const int64_t n = std::stoll(name.substr(1));
  check(most > 1 && most < n, "the elements of ", name, " can be limited to 2 .. ", n - 1,
        " moved points, not ", most);
  std::vector<int64_t> out;
  for (int64_t a = 0; a < group.order(); ++a)
    if (moved(a, n) <= most) out.push_back(a);
  return out;
}

}  // namespace

GroupWords::GroupWords(const std::string& given) : name(given), group(read_name(given)[1].str()) {
  const auto parts = read_name(name);
  const auto has = [&](size_t i) { return parts[i].matched; };
  if (has(2))
    letters = restricted(group, has(3) ? std::stoll(parts[3].str()) : 2);
  else
    for (int64_t a = 0; a < group.order(); ++a) letters.push_back(a);
  if (!has(4)) return;
  hard = parts[4].str() == "_hard";
  tokens = hard ? kBlock : std::stoll(parts[5].str());
  special = has(6), only_input = has(7);
  check(tokens >= 1 && tokens <= kMostTokens, "an element can take 1 .. ", kMostTokens,
        " tokens, not ", tokens);
  check(!only_input || special, "'only_input' is about the special token; add '_s_token'");
}

int64_t GroupWords::draws(int64_t length) const {
  return hard ? length : (length + tokens - 1) / tokens;
}

std::vector<int64_t> GroupWords::spell(const std::vector<int64_t>& drawn, int64_t length) const {
  std::vector<int64_t> out;
  out.reserve(size_t(length));
  for (int64_t t = 0; t < length; ++t) {
    const int64_t block = t / tokens * tokens;
    if (!hard) {
      const int64_t x = letters[size_t(drawn[size_t(t / tokens)])];
      out.push_back(t == block || !special ? x : filler());
      continue;
    }
    int64_t product = group.identity();
    for (int64_t i = t; t == block && i < std::min(t + tokens, length); ++i)
      product = group.product(product, letters[size_t(drawn[size_t(i)])]);
    out.push_back(product);
  }
  return out;
}

std::vector<int64_t> GroupWords::answers(const std::vector<int64_t>& input) const {
  const auto n = int64_t(input.size());
  std::vector<int64_t> out(input.size(), 0);
  int64_t product = group.identity();
  for (int64_t t = 0; t < n; ++t) {
    const bool first = t % tokens == 0;
    if (first) product = group.product(product, input[size_t(t)]);
    // Late by tokens - 1: time to work on an element before its answer is due.
    if (const int64_t at = t + tokens - 1; at < n)
      out[size_t(at)] = !first && special && !only_input ? filler() : product;
  }
  return out;
}

}  // namespace lrnn::tasks
