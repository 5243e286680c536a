#include "text/question.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "text/python_text.h"

namespace lrnn::text {
namespace {

// A token is a word with the spaces before it; spaces at the end are one more. The id is its
// length.
class WordEncoder final : public Encoder {
 public:
  void encode(std::string_view text, Ids& ids) override {
    for (size_t at = 0; at < text.size();) {
      size_t end = text.find_first_not_of(' ', at);
      end = std::min(text.find(' ', std::min(end, text.size())), text.size());
      ids.push_back(int32_t(end - at));
      at = end;
    }
  }
};

std::vector<Question> questions_in(const std::string& lines, const std::string& format = "auto") {
  const auto file = cat(testing::TempDir(), "lrnn-questions-", ::getpid(), ".jsonl");
  write_atomically(file, lines);
  try {
    auto out = read_questions(file, format);
    std::filesystem::remove(file);
    return out;
  } catch (...) {
    std::filesystem::remove(file);
    throw;
  }
}

std::string problem_of(const std::string& lines) {
  try {
    questions_in(lines);
    return "none";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Questions, NativeLinesOfEveryKind) {
  const auto choice =
      questions_in("{\"context\": \"a\", \"choices\": [\" né\", \" no\"], \"gold\": 1}\n\n");
  ASSERT_EQ(choice.size(), 1u);
  EXPECT_EQ(choice[0].kind, Question::kChoice);
  EXPECT_EQ(choice[0].characters, (std::vector<int64_t>{2, 2})) << "characters, not bytes";
  EXPECT_EQ(choice[0].gold, 1u);
  EXPECT_EQ(questions_in("{\"context\": \"a\", \"target\": \" b\"}")[0].kind, Question::kCloze);
  const auto rolling = questions_in("{\"text\": \"one  two\\nthrée\"}")[0];
  EXPECT_EQ(rolling.kind, Question::kRolling);
  EXPECT_EQ(rolling.words, 3);
  EXPECT_EQ(rolling.bytes, 15);
}

TEST(Questions, MistakesNameTheLine) {
  const std::string good = "{\"context\": \"a\", \"target\": \" b\"}\n";
  EXPECT_NE(problem_of(good + "{\"context\": 3}").find("line 2"), std::string::npos);
  EXPECT_NE(problem_of(good + "{").find("line 2"), std::string::npos);
  EXPECT_NE(problem_of(good + "{\"text\": \"x\"}").find("another kind"), std::string::npos);
  EXPECT_NE(
      problem_of("{\"context\": \"a\", \"choices\": [\"b\", \"c\"], \"gold\": 2}").find("gold"),
      std::string::npos);
  EXPECT_NE(problem_of("\n \n").find("no questions"), std::string::npos);
}

TEST(Questions, DatasetsByTheirOwnFields) {
  const auto piqa =
      questions_in("{\"goal\": \"g\", \"sol1\": \"a\", \"sol2\": \"b\", \"label\": 1}")[0];
  EXPECT_EQ(piqa.pairs[1].context, "Question: g\nAnswer:");
  EXPECT_EQ(piqa.pairs[1].continuation, " b");
  const auto swag = questions_in(
      "{\"activity_label\": \"Cutting\", \"ctx_a\": \"A man.\", \"ctx_b\": \"the MAN\", "
      "\"endings\": "
      "[\"goes  on. [title] Then [x] rest\", \"ends\"], \"label\": \"0\"}")[0];
  EXPECT_EQ(swag.pairs[0].context, "Cutting: A man. The man");
  EXPECT_EQ(swag.pairs[0].continuation, " goes on.. Then rest");
  const auto wino = questions_in(
      "{\"sentence\": \"Ann saw Bo and _ waved.\", \"option1\": \"Ann\", \"option2\": \"Bo\", "
      "\"answer\": \"2\"}")[0];
  EXPECT_EQ(wino.pairs[0].context, "Ann saw Bo and Ann");
  EXPECT_EQ(wino.pairs[1].context, "Ann saw Bo and Bo");
  EXPECT_EQ(wino.pairs[1].continuation, " waved.");
  EXPECT_EQ(wino.gold, 1u);
  const auto arc = questions_in(
      "{\"question\": \"q\", \"choices\": {\"text\": [\"x\", \"y\", \"z\"], \"label\": [\"A\", "
      "\"B\", \"C\"]}, \"answerKey\": \"C\"}")[0];
  EXPECT_EQ(arc.pairs.size(), 3u);
  EXPECT_EQ(arc.gold, 2u);
  const auto lambada = questions_in("{\"text\": \"the last word\"}", "lambada")[0];
  EXPECT_EQ(lambada.pairs[0].context, "the last");
  EXPECT_EQ(lambada.pairs[0].continuation, " word");
}

TEST(Questions, PagesOfWikiTextAreReadAsTexts) {
  const std::string page =
      " = Robert = \\n He said , \\\" hello world \\\" ( in 1 @,@ 234 ) . It 's 5 @.@ 0 \u00B0 C ; "
      "'tis "
      "' a b ' ! Boys ' toys at 3 @-@ 4 . \\n = = Plot = = \\n = = = Sub = = = \\n The N men [ a ] "
      "{ b } "
      "? /' 5/ x : y \\n";
  const auto q = questions_in("{\"page\": \"" + page + "\"}")[0];
  EXPECT_EQ(q.kind, Question::kRolling);
  EXPECT_EQ(q.text,
            " = Robert =\nHe said, \"hello world\" (in 1,234). It's 5.0\u00B0C;'tis'a b'! "
            "Boys'toys at 3-4.\n== Plot ==\n=== Sub ===\nThe 1 men [a] {b}? /'[0-9]/ x: y\n");
  EXPECT_EQ(q.words, 68) << "of the page as it is published, its empty ends included";
  EXPECT_EQ(q.bytes, 192);
  const auto open = questions_in("{\"page\": \"a ( b ( c ) d ) ( open\"}")[0];
  EXPECT_EQ(open.text, "a (b ( c) d ) ( open") << "a pair ends at the first )";
}

TEST(Questions, CompletionsOfAnyCase) {
  const auto q = questions_in("{\"text\": \"\u00A0 Title: x \", \"value\": \" The Answer\\n\"}")[0];
  EXPECT_EQ(q.kind, Question::kCompletion);
  EXPECT_EQ(q.text, "Title: x");
  EXPECT_EQ(q.wanted, "The Answer");
  EXPECT_TRUE(contains_in_any_case("so the aNSWER is", q.wanted));
  EXPECT_FALSE(contains_in_any_case("the answe", q.wanted));
  EXPECT_EQ(questions_in("{\"context\": \" a\", \"contains\": \"b\"}")[0].text, " a")
      << "a line of ours is taken as it stands";
  WordEncoder words;
  EXPECT_EQ(prompt_of(q, words, {.longest = 50}), (Ids{6, 2}));
  EXPECT_EQ(prompt_of(q, words, {.bos = true, .prefix = 9, .longest = 50}), (Ids{6, 2}))
      << "two are read: 48 of 50 are for the answer";
  EXPECT_THROW(prompt_of(q, words, {.longest = 48}), Error);
}

TEST(Requests, SpacesMoveAndContextsAreCut) {
  WordEncoder words;
  const Asking how{.prefix = 99, .longest = 3};
  const auto moved = request_of({"a bb  ", "ccc"}, words, how);
  EXPECT_EQ(moved.ids, (Ids{1, 3, 5}));
  EXPECT_EQ(moved.scored, 1u);
  const auto cut = request_of({"a bb ccc dddd", " e f"}, words, how);
  EXPECT_EQ(cut.ids, (Ids{4, 5, 2, 2}));  // three are read
  EXPECT_EQ(cut.scored, 2u);
  const auto alone = request_of({"", "a b"}, words, how);
  EXPECT_EQ(alone.ids, (Ids{99, 1, 2}));
  EXPECT_EQ(alone.scored, 2u);
  EXPECT_EQ(request_of({"a", " b"}, words, {.bos = true, .prefix = 99}).ids, (Ids{99, 1, 2}));
  EXPECT_THROW(request_of({"a", " b c d e"}, words, how), Error);
}

// Every token is predicted once, from as much before it as the rules say.
TEST(Requests, RollingWindows) {
  for (const size_t n : {1, 5, 6, 22}) {  // 1, max, max + 1, 4 max + 2
    Ids ids;
    for (size_t i = 0; i < n; ++i) ids.push_back(int32_t(100 + i));
    Ids with = {7};
    with.insert(with.end(), ids.begin(), ids.end());
    size_t done = 0;
    for (const auto& r : rolling_requests(ids, {.prefix = 7, .longest = 5})) {
      EXPECT_LE(r.ids.size(), 6u);
      const size_t end = done + r.scored;
      // The window ends where the scored tokens end, and is as long as it may be.
      const size_t begin = done == 0 ? 0 : end - 5;
      EXPECT_EQ(r.ids, Ids(with.begin() + ptrdiff_t(begin), with.begin() + ptrdiff_t(end + 1)));
      EXPECT_TRUE(r.scored == 5 || end == n);
      done = end;
    }
    EXPECT_EQ(done, n);
  }
}

}  // namespace
}  // namespace lrnn::text
