#include "tasks/group_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace lrnn::tasks {
namespace {

using Ids = std::vector<int64_t>;

class GroupFiles : public testing::Test {
 protected:
  GroupFiles() { std::filesystem::create_directories(folder); }
  ~GroupFiles() override { std::filesystem::remove_all(folder); }

  std::string write(const std::string& text) const {
    std::ofstream(folder + "/x.csv") << text;
    return folder + "/x.csv";
  }
  // Distinct words of S3 as the task itself draws them.
  std::string write_words(int64_t count, int64_t length) const {
    const auto t = make(
        Section::from_text(cat("{name: group, train: {length: ", length, ", set: ", count, "}}")));
    std::string text = group_file_header();
    for (int64_t i = 0; i < count; ++i) {
      auto e = t->sample(7, Split::kTrain, uint64_t(i));
      text += group_file_row(7, {e.input.begin() + 1, e.input.end()},
                             {e.target.begin() + 1, e.target.end()});
    }
    return write(text);
  }
  std::string error_of(const std::string& text) const {
    try {
      GroupFile(write(text), GroupWords("S3"), {1, 9});
      return "no error";
    } catch (const Error& e) {
      return std::string(e.what()).substr(folder.size() + 1);
    }
  }

  const std::string folder = testing::TempDir() + "lrnn_group_file_" + std::to_string(getpid());
};

TEST_F(GroupFiles, RowsLookAsPublished) {
  EXPECT_EQ(group_file_header(), "seed,input,target\n");
  EXPECT_EQ(group_file_row(3, {1, 2, 3}, {1, 4, 0}), "3,1 2 3,1 4 0\n");
}

TEST_F(GroupFiles, TrainingVisitsItsShareInNewOrders) {
  const auto path = write_words(200, 5);
  const auto t = make(Section::from_text("{name: group, train: {length: 5, file: " + path +
                                         "}, eval: {length: 5, samples: 2, file: " + path + "}}"));
  std::set<Ids> first, second, eval;
  Ids order_a, order_b;
  for (uint64_t i = 0; i < 198; ++i) {
    first.insert(t->sample(1, Split::kTrain, i).input);
    second.insert(t->sample(1, Split::kTrain, 198 + i).input);
    order_a.push_back(t->sample(1, Split::kTrain, i).input[1]);
    order_b.push_back(t->sample(1, Split::kTrain, 198 + i).input[1]);
  }
  for (uint64_t i = 0; i < 2; ++i) eval.insert(t->sample(1, Split::kEval, i).input);
  EXPECT_EQ(first.size(), 198u);
  EXPECT_EQ(first, second);
  EXPECT_NE(order_a, order_b);
  EXPECT_EQ(eval.size(), 2u);
  for (const auto& row : eval) EXPECT_FALSE(first.contains(row)) << "the splits share a row";
}

TEST_F(GroupFiles, OtherLengthsAreDrawnFresh) {
  const auto path = write_words(50, 5);
  const auto t = make(Section::from_text("{name: group, train: {length: 5, file: " + path + "}}"));
  EXPECT_EQ(t->sample(1, Split::kTrain, 0, {9, 9}).length, 9);
  EXPECT_EQ(t->sample(1, Split::kEval, 0).length, 512);
}

TEST_F(GroupFiles, TooFewRowsForAnEvaluationAreAnError) {
  const auto path = write_words(200, 5);
  try {
    make(Section::from_text("{name: group, eval: {length: 5, file: " + path + "}}"));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.what(), "an evaluation asks for 5000 sequences, but " + path + " gives 2");
    EXPECT_EQ(e.hint(), "set eval.samples=2, or a larger eval.share");
  }
}

TEST_F(GroupFiles, WrongFilesAreNamedByLine) {
  const std::string head = "seed,input,target\n";
  EXPECT_EQ(error_of("input,target\n"),
            "x.csv:1: the first line must be 'seed,input,target', got 'input,target'");
  EXPECT_EQ(error_of(head), "x.csv holds no sequences");
  EXPECT_EQ(error_of(head + "0,1 2 3,1 4 0\n"), "no error");
  EXPECT_EQ(error_of(head + "0,1 2 3,1 4 0\r\n"), "no error");
  EXPECT_EQ(error_of(head + "0,1 2 3,1 4 0\n0,1 2 3,1 5 0\n"),
            "x.csv:3: target 2 is 5, but in S3 it must be 4");
  EXPECT_EQ(error_of(head + "0,1 2\n"), "x.csv:2: a line is seed,input,target");
  EXPECT_EQ(error_of(head + "0,1 6,1 0\n"), "x.csv:2: 6 is not one of the ids 0 .. 5");
  EXPECT_EQ(error_of(head + "0,1 x,1 0\n"),
            "x.csv:2: ids are whole numbers with one space between, got 'x'");
  EXPECT_EQ(error_of(head + "0,1 2,1\n"), "x.csv:2: 2 inputs but 1 targets");
  EXPECT_EQ(error_of(head + "0,1,1\n0,1 2,1 4\n"),
            "x.csv:3: a sequence of length 2, but those before are 1 long");
  EXPECT_EQ(error_of(head + "0,1 1 1 1 1 1 1 1 1 1,1 0 1 0 1 0 1 0 1 0\n"),
            "x.csv:2: a sequence of length 10, but the config asks for [1, 9]");
  EXPECT_THROW(GroupFile(folder + "/none.csv", GroupWords("S3"), {1, 9}), Error);
}

}  // namespace
}  // namespace lrnn::tasks
