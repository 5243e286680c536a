#include "automata/read/regex.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "tests/automata/derivative.h"

namespace lrnn::automata {
namespace {

bool regex_accepts(const Automaton& a, const std::string& word, const std::string& alphabet) {
  std::vector<int64_t> ids;
  for (const char c : word) ids.push_back(static_cast<int64_t>(alphabet.find(c)));
  return a.accepts(ids);
}

std::vector<std::string> regex_words(const std::string& alphabet, size_t longest) {
  std::vector<std::string> out = {""};
  for (size_t i = 0; out[i].size() < longest; ++i)
    for (const char c : alphabet) out.push_back(out[i] + c);
  return out;
}

// Expressions with every operator; brackets only where the grammar needs none or has them anyway,
// so that precedence is tested too.
std::string random_regex(Random& random, int depth) {
  const auto inner = [&] { return random_regex(random, depth - 1); };
  if (depth == 0) {
    const char* leaves[] = {"a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", "()", "\\b", "[^a-b]"};
    return leaves[random.below(10)];
  }
  switch (random.below(12)) {
    case 0: return inner() + "|" + inner();
    case 1: return inner() + "&" + inner();
    case 2: return "!" + inner();
    case 3: return "(" + inner() + ")*";
    case 4: return "(" + inner() + ")+";
    case 5: return "(" + inner() + ")?";
    case 6: return "(" + inner() + "){2}";
    case 7: return "(" + inner() + "){1,}";
    case 8: return "(" + inner() + "){1,2}";
    case 9: return "(" + inner() + "|)";
    default: return inner() + inner();
  }
}

TEST(Regex, AgreesWithDerivatives) {
  const std::string alphabet = "abc";
  const auto short_words = regex_words(alphabet, 4);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(11, 0, seed);
    const std::string regex = random_regex(random, 3);
    const auto a = from_regex(regex, alphabet_of(alphabet));
    for (const auto& word : short_words)
      ASSERT_EQ(regex_accepts(a, word, alphabet), testing_regex::matches(regex, alphabet, word))
          << regex << " on '" << word << "'";
  }
}

TEST(Regex, AgreesWithDerivativesOnLongWords) {
  const std::string alphabet = "abc";
  for (const std::string regex :
       {".*aba.*", "(a|b)*c(aa)*", "!(.*ab.*)&.*c", "(abc|bca){3,}", "(a.{3}|b)*", "!(a*b*c*)"}) {
    const auto a = from_regex(regex, alphabet_of(alphabet));
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Random random(12, 1, seed);
      std::string word;
      for (int i = 0; i < 300; ++i) word += alphabet[random.below(3)];
      EXPECT_EQ(regex_accepts(a, word, alphabet), testing_regex::matches(regex, alphabet, word));
    }
  }
}

// Equal languages have equal tables, whatever the expression.
TEST(Regex, FormIsCanonical) {
  const auto table = [](const char* regex) {
    const auto a = from_regex(regex, alphabet_of("ab"));
    return std::tuple(a.next, a.accept, a.start);
  };
  EXPECT_EQ(table("(ab)*"), table("()|a(ba)*b"));
  EXPECT_EQ(table("!(!a&!b)"), table("a|b"));
  EXPECT_EQ(table("a{2,4}"), table("aa|aaa|aaaa"));
  EXPECT_EQ(table("!a*"), table(".*b.*"));
  EXPECT_EQ(table("!ab"), table("(!a)b"));
  EXPECT_EQ(table("a|b&a"), table("a"));
  EXPECT_EQ(table("[^ab]"), table("a&b"));
  EXPECT_EQ(table(""), table("()"));
  EXPECT_EQ(table("|a"), table("a?"));
  EXPECT_EQ(table("!!a"), table("a"));
  EXPECT_NE(table("a*"), table("a+"));
  EXPECT_EQ(from_regex("(aaaa)*", alphabet_of("a")).states, 4);
  EXPECT_EQ(from_regex("(a|b)*a(a|b)(a|b)", alphabet_of("ab")).states, 8);
}

TEST(Regex, SymbolsAreCharactersNotBytes) {
  const auto a = from_regex("(äß)*|[α-ω]\\.", alphabet_of("äßβ."));
  EXPECT_TRUE(a.accepts({0, 1, 0, 1}));
  EXPECT_TRUE(a.accepts({2, 3}));
  EXPECT_FALSE(a.accepts({3, 3}));
}

std::string regex_error(const std::string& regex, const std::string& alphabet = "ab") {
  try {
    from_regex(regex, alphabet_of(alphabet));
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Regex, ErrorsNameTheColumn) {
  const auto column = [](int n) {
    return "in the regular expression, column " + std::to_string(n) + ": ";
  };
  EXPECT_EQ(regex_error("ab)"), column(3) + "there is no '(' for this ')'");
  EXPECT_EQ(regex_error("a(b"), column(2) + "'(' is never closed");
  EXPECT_EQ(regex_error("ab|*"), column(4) + "'*' has nothing to repeat");
  EXPECT_EQ(regex_error("abx"), column(3) + "'x' is not in the alphabet");
  EXPECT_EQ(regex_error("ab[ax]"), column(5) + "'x' is not in the alphabet");
  EXPECT_EQ(regex_error("a[b"), column(2) + "'[' is never closed");
  EXPECT_EQ(regex_error("a[]"), column(2) + "an empty class");
  EXPECT_EQ(regex_error("[b-a]"), column(4) + "the range from 'b' to 'a' is backwards");
  EXPECT_EQ(regex_error("a\\"), column(2) + "'\\' at the end escapes nothing");
  EXPECT_EQ(regex_error("a{2"), column(2) + "'{' needs its '}'");
  EXPECT_EQ(regex_error("a{x}"), column(2) + "'{' needs a number");
  EXPECT_EQ(regex_error("a{,2}"), column(2) + "'{' needs a number");
  EXPECT_EQ(regex_error("ba{3,2}"), column(3) + "{3,2} repeats backwards");
  EXPECT_EQ(regex_error("a{1,1000000}"), column(2) + "a repeat of more than 10000");
  EXPECT_EQ(regex_error("a|!"), column(3) + "'!' has nothing to complement");
  EXPECT_EQ(regex_error("äb", "ab"), column(1) + "'ä' is not in the alphabet");
  EXPECT_EQ(regex_error("aä]", "aä"), column(3) + "']' closes nothing");
  EXPECT_EQ(regex_error(std::string(100000, '(')),
            column(201) + "more than 200 brackets inside each other");
  EXPECT_EQ(regex_error("a\xff"), "the regular expression is not UTF-8: column 2 is no character");
  EXPECT_EQ(regex_error("a", "aba"), "the alphabet has 'a' twice");
  EXPECT_EQ(regex_error("a", "a\xc0\x80"), "the alphabet is not UTF-8: column 2 is no character");
}

TEST(Regex, HostileOnesEndInAnError) {
  for (const std::string& regex :
       {std::string("a{10000}{10000}"), std::string("(.*a.{40})"),
        std::string("((a{100}){100}){100}"), std::string("(((){9000}){9000}){9000}"),
        std::string(2000, '?').insert(0, "a"), std::string("(a?){5000}a{5000}"),
        std::string("!(.*a.{30})&!(.*b.{30})"), std::string(200000, 'a')}) {
    EXPECT_THROW(from_regex(regex, alphabet_of("ab")), Error) << regex.substr(0, 50);
  }
  EXPECT_EQ(from_regex(std::string(99999, '!') + "a", alphabet_of("ab")).states, 3);
}

}  // namespace
}  // namespace lrnn::automata
