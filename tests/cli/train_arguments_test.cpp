#include <gtest/gtest.h>

#include "cli/train.h"
#include "tests/experiments/folder.h"

namespace lrnn::cli {
namespace {

class Arguments : public testing::Test {
 protected:
  Arguments() {
    std::filesystem::create_directories(run_);
    write(run_ + "/config.yaml", "");
  }
  // What is settled as "config, out"; or the error.
  std::string settled(const TrainArguments& a) {
    std::string out;
    const auto error = error_of([&] {
      const auto found = settle(a);
      out = found.config + ", " + found.out;
    });
    return error == "no error" ? out : error;
  }
  TemporaryFolder at_;
  const std::string run_ = at_ / "my run", own_ = run_ + "/config.yaml, " + run_;
};

TEST_F(Arguments, ARunHasAConfigOfItsOwn) {
  EXPECT_EQ(settled({.config = run_, .resume = true}), own_);
  EXPECT_EQ(settled({.config = run_ + "/", .resume = true}), own_);
  EXPECT_EQ(settled({.config = run_, .out = run_ + "/", .resume = true}), own_);
  EXPECT_EQ(settled({.out = run_, .resume = true}), own_);
  EXPECT_EQ(settled({.config = "train.steps=3", .out = run_, .resume = true}), own_);
  EXPECT_EQ(settled({.config = run_, .overwrite = true}), own_);
  EXPECT_EQ(settled({.config = "a.yaml", .out = "b"}), "a.yaml, b");
}

TEST_F(Arguments, WhatIsMissingIsSaid) {
  const auto error = settled({.config = run_});
  EXPECT_HAS(error, "is a run already");
  EXPECT_HAS(error, "lrnn train '" + run_ + "' --resume");
  EXPECT_HAS(settled({.out = run_}), "is a run already");
  EXPECT_HAS(settled({.config = at_ / ""}), "is a folder without a run in it");
  EXPECT_HAS(settled({.out = at_ / "none", .resume = true}), "does not exist");
  EXPECT_HAS(settled({.resume = true}), "which run?");
  EXPECT_HAS(settled({}), "no config was given");
  EXPECT_HAS(settled({.config = "train.steps=3"}), "no config was given");
  EXPECT_HAS(settled({.config = at_ / "", .from = run_}), "is a folder and no config");
}

TEST_F(Arguments, WhatContradictsItselfIsSaid) {
  EXPECT_HAS(settled({.config = run_, .resume = true, .overwrite = true}), "leave one of them out");
  EXPECT_HAS(settled({.from = run_, .resume = true}), "--from begins a run");
  EXPECT_HAS(settled({.config = run_, .out = "other", .resume = true}), "two run folders");
  EXPECT_HAS(settled({.config = run_, .seeds = 3, .resume = true}), "--seeds trains a config");
  write(run_ + "/manifest.json", "");
  EXPECT_HAS(settled({.config = run_, .resume = true}), "is a checkpoint");
}

TEST_F(Arguments, OnlyANamedEndExtends) {
  EXPECT_TRUE((TrainArguments{.overrides = {"seed=1", "train.steps=3"}}.extend()));
  EXPECT_FALSE((TrainArguments{.overrides = {"seed=1", "train.lr=3"}}.extend()));
  EXPECT_TRUE(settle({.config = "train.stop_at=0", .out = run_, .resume = true}).extend());
}

TEST(ShellWord, IsReadBackByAShell) {
  EXPECT_EQ(shell_word("runs/x-1.5"), "runs/x-1.5");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace lrnn::cli
