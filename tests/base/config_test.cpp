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
  std::string regex = {};
  template <class Visit> void fields(Visit&& visit) {
    visit("steps", steps, "how many", at_least(1));
    visit("lr", lr, "how fast");
    visit("clip", clip, "whether");
    visit("kind", kind, "which", {"cosine", "constant"});
    visit("inner", inner, "more");
    visit("regex", regex, "anything");
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
  EXPECT_NE(error_of("regex: *a\n").find("needs quotes"), std::string::npos);
  EXPECT_EQ(error_of("{[1]: 2}\n"), "x.yaml:1: [1] is not a key | ");
}

Config with(const std::vector<std::string>& set, const std::string& yaml = "{}") {
  auto section = Section::from_text(yaml, "x.yaml");
  for (const auto& s : set) section.set(s);
  return load<Config>(section);
}

TEST(Config, WholeNumbersHaveManyFaces) {
  for (const auto& [text, value] :
       std::vector<std::pair<std::string, int64_t>>{{"1e3", 1000},
                                                    {"2E4", 20000},
                                                    {"1.5e3", 1500},
                                                    {"1000.0", 1000},
                                                    {"1e+3", 1000},
                                                    {"12000e-3", 12},
                                                    {"9007199254740993.0", 9007199254740993},
                                                    {"9223372036854775807", INT64_MAX},
                                                    {"9.223372036854775807e18", INT64_MAX}}) {
    EXPECT_EQ(with({"steps=" + text}).steps, value) << text;
    EXPECT_EQ(with({}, "steps: " + text).steps, value) << text;
  }
  EXPECT_EQ(with({"inner.length=[1e1, 2e1]"}).inner.length, (Range{10, 20}));
  int64_t whole = 0;
  EXPECT_EQ(parse_whole("-2e2", whole), Whole::kYes);
  EXPECT_EQ(whole, -200);
  EXPECT_EQ(parse_whole("-9223372036854775808.0", whole), Whole::kYes);
  EXPECT_EQ(whole, INT64_MIN);
  EXPECT_EQ(parse_whole("0e99", whole), Whole::kYes);
  EXPECT_EQ(whole, 0);
  for (const char* text : {"1.5", "1e-1", "1e", "e3", ".", "", "1e3x", "0x10", "1 000", "1e1.5"})
    EXPECT_EQ(parse_whole(text, whole), Whole::kNo) << text;
  for (const char* text : {"9223372036854775808", "1e19", "1e30", "-1e30", "1e2000000000"})
    EXPECT_EQ(parse_whole(text, whole), Whole::kTooLarge) << text;
  EXPECT_EQ(error_of("steps: 1e-1\n"), "x.yaml:1: steps must be a whole number, got '1e-1' | ");
  EXPECT_EQ(error_of("{}", {"steps=1e30"}),
            "on the command line: steps must be a whole number between -9223372036854775808 and "
            "9223372036854775807, got '1e30' | ");
}

TEST(Config, OnTheCommandLineATextIsThatText) {
  for (const char* text :
       {"!(ab)*", "*a",     "&x",  "[ab]", "[ab", "{}",           "# x",   "a: b", "a #b",
        "'ab'",   "\"ab\"", "",    " ",    "~",   "null",         "1e3",   "true", "%",
        "@",      "`",      "- a", "a=b",  "\\n", "{\"a\": [1]}", "über\n"}) {
    const auto c = with({"regex=" + std::string(text)}, "regex: other");
    EXPECT_EQ(c.regex, text);
    EXPECT_EQ(load<Config>(Section::from_text(YAML::Dump(save(c)))), c) << text;
  }
}

TEST(Config, WhatIsNoTextIsYaml) {
  EXPECT_EQ(with({"inner={length: 4, betas: [0.5]}"}).inner, (Inner{{4, 4}, {0.5}}));
  EXPECT_EQ(with({"steps=3", "steps=~"}, "{}").steps, 10);
  // Inside a mapping a text is YAML's; the last word wins.
  auto section = Section::from_text("{}", "x.yaml");
  section.set("top.regex=*a");
  section.set("top={regex: 'b c'}");
  EXPECT_EQ(load<Config>(section.child("top")).regex, "b c");
  section.set("top.regex=*c");
  EXPECT_EQ(load<Config>(section.child("top")).regex, "*c");
  EXPECT_EQ(error_of("{}", {"inner.betas=[0.9"})
                .rfind("on the command line: inner.betas must be a list of numbers, got '[0.9' | "
                       "not valid YAML: ",
                       0),
            0u);
  EXPECT_EQ(error_of("{}", {"steps="}),
            "on the command line: steps must be a whole number, got '' | ");
  EXPECT_EQ(error_of("{}", {"steps=!(ab)*"}),
            "on the command line: steps must be a whole number, got '!(ab)*' | ");
  EXPECT_EQ(error_of("{}", {"inner=!x {length: 3}"}),
            "on the command line: inner must be a mapping of keys to values, got '!x {length: 3}' "
            "| '!x' is read as a YAML tag, not as a text");
}

TEST(Config, NoTextVanishesInAFile) {
  EXPECT_EQ(error_of("steps: 1\nregex: !(ab)*\n"),
            "x.yaml:2: '!(ab)*' is read as a YAML tag, not as a text | put quotes around it: "
            "'!(ab)*'");
  EXPECT_EQ(error_of("regex: !a b\n"),
            "x.yaml:1: '!a' is read as a YAML tag, not as a text | put quotes around it: '!a b'");
  EXPECT_EQ(error_of("inner: !x {length: 3}\n").rfind("x.yaml:1: '!x' is read as a YAML tag", 0),
            0u);
  EXPECT_EQ(error_of("regex: &x\n"),
            "x.yaml:1: '&x' is read as a YAML anchor, not as a text | put quotes around it: '&x'");
  EXPECT_EQ(error_of("regex: [ab]\n"),
            "x.yaml:1: regex must be a word, got '[ab]' | put quotes around it: '[ab]'");
  EXPECT_EQ(with({}, "regex: '!(ab)*'").regex, "!(ab)*");
  EXPECT_EQ(with({}, "regex: !!str 12").regex, "12");
  EXPECT_EQ(with({}, "inner: &i {length: 3}").inner.length, (Range{3, 3}));
}

TEST(Config, ListsItsKeys) {
  const auto all = keys<Config>("x.");
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(all[0].name, "x.steps");
  EXPECT_EQ(all[0].type, "whole number");
  EXPECT_EQ(all[0].standard.Scalar(), "10");
  EXPECT_EQ(all[0].limits.text(), "at least 1");
  EXPECT_EQ(all[4].name, "x.inner.length");
  EXPECT_EQ(all[4].type, "range");
  EXPECT_EQ(help(keys<Config>())
                .rfind("  steps: 10                     how many (whole number, "
                       "at least 1)\n  lr: 0.001",
                       0),
            0u);
  EXPECT_NE(help(keys<Config>()).find("which (cosine | constant)\n"), std::string::npos);
}

TEST(Config, TellsWhatDiffers) {
  Config a, b;
  b.inner.length = {1, 2};
  EXPECT_EQ(differences(save(a), save(a)).size(), 0u);
  EXPECT_EQ(differences(save(a), save(b)),
            std::vector<std::string>{"inner.length: [3, 40] -> [1, 2]"});
}

TEST(Config, DifferencesNameAKeyThatOneSideLacks) {
  const auto a = YAML::Load("{x: 1, inner: {y: 2}}"), b = YAML::Load("{x: 1, z: {w: 3}}");
  EXPECT_EQ(differences(a, b), (std::vector<std::string>{"inner: {y: 2} -> (absent)",
                                                         "z: (absent) -> {w: 3}"}));
}

}  // namespace
}  // namespace lrnn
