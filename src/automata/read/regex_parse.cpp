#include <algorithm>
#include <map>

#include "automata/read/regex.h"
#include "base/error.h"
#include "base/text.h"

namespace lrnn::automata {
namespace {

constexpr int64_t kDeepest = 200;        // brackets inside brackets
constexpr int64_t kMostRepeats = 10000;  // r{10000}
constexpr size_t kLongestRegex = 100000;

class RegexParser {
 public:
  RegexParser(const std::string& regex, const std::vector<std::string>& alphabet)
      : text_(characters(regex, "the regular expression")) {
    for (size_t x = 0; x < alphabet.size(); ++x) number_[alphabet[x]] = static_cast<int32_t>(x);
    if (text_.size() > kLongestRegex)
      throw Error(cat("the regular expression has ", text_.size(), " characters, more than ",
                      kLongestRegex));
  }

  std::vector<RegexNode> parse() {
    alternatives();
    if (!done()) fail("there is no '(' for this ')'");
    return std::move(nodes_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, size_t at, const std::string& hint = {}) const {
    throw Error(cat("in the regular expression, column ", at + 1, ": ", what), hint);
  }
  [[noreturn]] void fail(const std::string& what) const { fail(what, at_); }

  bool done() const { return at_ == text_.size(); }
  bool see(const char* character) const { return !done() && text_[at_] == character; }
  bool take(const char* character) { return see(character) && (++at_, true); }

  // Later steps recurse over the tree, so its height is bounded, not only the brackets'.
  size_t add(RegexNode node) {
    int64_t height = 0;
    for (const size_t child : node.children) height = std::max(height, height_[child] + 1);
    if (height > 5 * kDeepest) fail("too many operators inside each other", at_ - 1);
    height_.push_back(height);
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
  }
  // One child needs no node of its own, except that an empty concatenation is the empty word.
  size_t join(RegexNode::Kind kind, std::vector<size_t> children) {
    return children.size() == 1 ? children[0] : add({kind, std::move(children)});
  }

  size_t alternatives() {
    std::vector<size_t> all = {both()};
    while (take("|")) all.push_back(both());
    return join(RegexNode::kUnion, std::move(all));
  }

  size_t both() {
    std::vector<size_t> all = {concatenation()};
    while (take("&")) all.push_back(concatenation());
    return join(RegexNode::kBoth, std::move(all));
  }

  size_t concatenation() {
    std::vector<size_t> all;
    while (!done() && !see("|") && !see("&") && !see(")")) all.push_back(complement());
    return join(RegexNode::kConcat, std::move(all));
  }

  // Two complements cancel, so a long row of '!' needs no depth.
  size_t complement() {
    const size_t begin = at_;
    bool odd = false;
    while (take("!")) odd = !odd;
    if (at_ > begin && (done() || see("|") || see("&") || see(")")))
      fail("'!' has nothing to complement", at_ - 1, "write !() for every word but the empty one");
    const size_t inner = repeat();
    return odd ? add({RegexNode::kNot, {inner}}) : inner;
  }

  size_t repeat() {
    size_t inner = atom();
    for (;;) {
      if (take("*"))
        inner = add({RegexNode::kRepeat, {inner}, {}, 0, -1});
      else if (take("+"))
        inner = add({RegexNode::kRepeat, {inner}, {}, 1, -1});
      else if (take("?"))
        inner = add({RegexNode::kRepeat, {inner}, {}, 0, 1});
      else if (see("{"))
        inner = counted(inner);
      else
        return inner;
    }
  }

  size_t counted(size_t inner) {
    const size_t begin = at_++;
    const int64_t least = count(begin);
    int64_t most = least;
    if (take(",")) most = see("}") ? -1 : count(begin);
    if (!take("}")) fail("'{' needs its '}'", begin, "repeats are {3}, {3,} or {3,5}");
    if (most >= 0 && most < least) fail(cat("{", least, ",", most, "} repeats backwards"), begin);
    return add({RegexNode::kRepeat, {inner}, {}, least, most});
  }

  int64_t count(size_t begin) {
    int64_t n = -1;
    for (; !done() && text_[at_].size() == 1 && text_[at_][0] >= '0' && text_[at_][0] <= '9';
         ++at_) {
      n = std::max<int64_t>(n, 0) * 10 + (text_[at_][0] - '0');
      if (n > kMostRepeats)
        fail(cat("a repeat of more than ", kMostRepeats), begin, "use a smaller number");
    }
    if (n < 0) fail("'{' needs a number", begin, "repeats are {3}, {3,} or {3,5}");
    return n;
  }

  size_t atom() {
    const size_t begin = at_;
    if (take("(")) {
      if (++depth_ > kDeepest)
        fail(cat("more than ", kDeepest, " brackets inside each other"), begin);
      const size_t inner = alternatives();
      if (!take(")")) fail("'(' is never closed", begin);
      --depth_;
      return inner;
    }
    if (take("[")) return one_of(begin);
    if (take(".")) return add({RegexNode::kSymbols, {}, every_symbol()});
    for (const char* c : {"*", "+", "?", "{"})
      if (see(c))
        fail(cat("'", c, "' has nothing to repeat"), begin,
             cat("write \\", c, " for the character itself"));
    for (const char* c : {"]", "}"})
      if (see(c))
        fail(cat("'", c, "' closes nothing"), begin,
             cat("write \\", c, " for the character itself"));
    return add({RegexNode::kSymbols, {}, {symbol(character())}});
  }

  std::vector<int32_t> every_symbol() const {
    std::vector<int32_t> all(number_.size());
    for (size_t x = 0; x < all.size(); ++x) all[x] = static_cast<int32_t>(x);
    return all;
  }

  // The next character, with its backslash removed.
  std::string character() {
    if (take("\\") && done()) fail("'\\' at the end escapes nothing", at_ - 1);
    return text_[at_++];
  }

  int32_t symbol(const std::string& c) const {
    const auto found = number_.find(c);
    if (found == number_.end())
      fail(cat(shown(c), " is not in the alphabet"), at_ - 1,
           "the alphabet lists every symbol that words may have");
    return found->second;
  }

  size_t one_of(size_t begin) {
    const bool none = take("^");
    std::vector<uint8_t> in(number_.size(), 0);
    bool any = false;
    for (; !see("]"); any = true) {
      if (done()) fail("'[' is never closed", begin);
      const std::string first = character();
      const bool range = see("-") && at_ + 1 < text_.size() && text_[at_ + 1] != "]";
      if (!range) {
        in[static_cast<size_t>(symbol(first))] = 1;
        continue;
      }
      ++at_;
      add_range(first, character(), in);
    }
    if (!any)
      fail("an empty class", begin,
           "write [^ab] for none of a and b, \\[ for the character itself");
    ++at_;
    std::vector<int32_t> out;
    for (size_t x = 0; x < in.size(); ++x)
      if ((in[x] != 0) != none) out.push_back(static_cast<int32_t>(x));
    return add({RegexNode::kSymbols, {}, std::move(out)});
  }

  void add_range(const std::string& first, const std::string& last,
                 std::vector<uint8_t>& in) const {
    const uint32_t low = code_point(first), high = code_point(last);
    if (low > high)
      fail(cat("the range from ", shown(first), " to ", shown(last), " is backwards"), at_ - 1);
    bool any = false;
    for (const auto& [c, x] : number_)
      if (code_point(c) >= low && code_point(c) <= high) in[static_cast<size_t>(x)] = any = true;
    if (!any)
      fail(cat("the range from ", shown(first), " to ", shown(last),
               " holds no symbol of the alphabet"),
           at_ - 1);
  }

  std::vector<std::string> text_;
  std::map<std::string, int32_t> number_;
  std::vector<RegexNode> nodes_;
  std::vector<int64_t> height_;
  size_t at_ = 0;
  int64_t depth_ = 0;
};

}  // namespace

std::vector<RegexNode> parse_regex(const std::string& regex,
                                   const std::vector<std::string>& alphabet) {
  return RegexParser(regex, alphabet).parse();
}

}  // namespace lrnn::automata
