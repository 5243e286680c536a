#include "base/config.h"

#include <gtest/gtest.h>

namespace lrnn {
namespace {

struct Inner {
  Range length = {3, 40};
  std::vector<double> betas = {0.9, 0.999};
  template <class Visit> void fields(Visit&& visit) {
    visit("length", length, "how long");
    visit("betas", betas, "two numbers");
  }
  bool operator==(const Inner&) const = default;
};

struct Config {
  int64_t steps = 10;
  double lr = 1e-3;
  bool clip = false;
  std::string kind = "cosine";
  Inner inner;
  template <class Visit> void fields(Visit&& visit) {
    visit("steps", steps, "how many");
    visit("lr", lr, "how fast");
    visit("clip", clip, "whether");
    visit("kind", kind, "which", {"cosine", "constant"});
    visit("inner", inner, "more");
  }
  void check(const Section& at) const {
    at.require(steps >= 1, "steps", "must be at least 1, got ", steps);
  }
  bool operator==(const Config&) const = default;
};

std::string error_of(const std::string& yaml, const std::vector<std::string>& set = {}) {
  try {
    auto section = Section::from_text(yaml, "x.yaml");
    for (auto& s : set) section.set(s);
    load<Config>(section);
    return "no error";
  } catch (const Error& e) {
    return std::string(e.what()) + " | " + e.hint();
  }
}

TEST(Config, ReadsEveryKind) {
  auto c = load<Config>(Section::from_text(
      "steps: 7\nlr: 2.5e-4\nclip: true\nkind: constant\ninner: {length: 128, betas: [0.5, 1]}\n"));
  EXPECT_EQ(c, (Config{7, 2.5e-4, true, "constant", {{128, 128}, {0.5, 1}}}));
}

TEST(Config, PrintsAndReadsBack) {
  Config c{3, 0.1 + 0.2, true, "constant", {{1, 9}, {1.0 / 3, 1e300}}};
  EXPECT_EQ(load<Config>(Section::from_text(YAML::Dump(save(c)))), c);
}

TEST(Config, NamesTheUnknownKeyAndItsLine) {
  EXPECT_EQ(error_of("steps: 7\ninner:\n  lenght: 3\n"),
            "x.yaml:3: inner.lenght is not a key | did you mean 'length'? "
            "the keys of inner are: length betas");
}

TEST(Config, NamesTheWrongType) {
  EXPECT_EQ(error_of("lr: 1\nsteps: many\n"),
            "x.yaml:2: steps must be a whole number, got 'many' | ");
  EXPECT_EQ(error_of("steps: 1.5\n"), "x.yaml:1: steps must be a whole number, got '1.5' | ");
  EXPECT_EQ(error_of("inner: 4\n"),
            "x.yaml:1: inner must be a mapping of keys to values, got '4' | ");
  EXPECT_EQ(error_of("lr: .nan\n"), "x.yaml:1: lr must be a number, got '.nan' | ");
}

TEST(Config, NamesTheImpossibleValue) {
  EXPECT_EQ(error_of("steps: 0\n"), "x.yaml:1: steps must be at least 1, got 0 | ");
  EXPECT_EQ(error_of("kind: sine\n"),
            "x.yaml:1: kind must be one of cosine, constant; got 'sine' | ");
}

TEST(Config, OverridesComeFromTheCommandLine) {
  auto section = Section::from_text("steps: 7\n", "x.yaml");
  section.set("inner.length=[1, 2]");
  section.set("steps=9");
  const auto c = load<Config>(section);
  EXPECT_EQ(c.steps, 9);
  EXPECT_EQ(c.inner.length, (Range{1, 2}));
  EXPECT_EQ(error_of("steps: 7\n", {"steps=0"}),
            "on the command line: steps must be at least 1, got 0 | ");
  EXPECT_EQ(error_of("steps: 7\n", {"steps"}),
            "'steps' is not key=value | for example train.steps=100");
  EXPECT_EQ(error_of("steps: 7\n", {"steps.more=1"}),
            "'steps.more=1': steps is a value, not a mapping | ");
}

TEST(Config, BrokenYamlNamesTheLine) {
  EXPECT_EQ(error_of("steps: 7\nlr: [1\n").rfind("x.yaml:3: not valid YAML", 0), 0u);
}

TEST(Config, TellsWhatDiffers) {
  Config a, b;
  b.inner.length = {1, 2};
  EXPECT_EQ(differences(save(a), save(a)).size(), 0u);
  EXPECT_EQ(differences(save(a), save(b)),
            std::vector<std::string>{"inner.length: [3, 40] -> [1, 2]"});
}

}  // namespace
}  // namespace lrnn
