#include "cli/output.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/progress.h"

namespace lrnn::cli {
namespace {

TEST(Output, WritesNumbersForPeople) {
  EXPECT_EQ(thousands(0), "0");
  EXPECT_EQ(thousands(999), "999");
  EXPECT_EQ(thousands(529856), "529,856");
  EXPECT_EQ(thousands(-1234567), "-1,234,567");
  EXPECT_EQ(thousands(-123), "-123");
  EXPECT_EQ(duration(3.14), "3.1 s");
  EXPECT_EQ(duration(200), "3 min 20 s");
  EXPECT_EQ(duration(7500), "2 h 5 min");
  EXPECT_EQ(duration(-1), "–");
  EXPECT_EQ(decimals(std::nan(""), 3), "–");
  EXPECT_EQ(filled_bar(0.5, 4), "[██░░]");
  EXPECT_EQ(filled_bar(7, 2), "[██]");
}

TEST(Output, ConfigsBecomeJsonWithTheirTypes) {
  const auto json =
      to_json(YAML::Load("{a: 1, b: 2.5, c: true, d: word, e: '7', f: [1, x], g: ~}"));
  EXPECT_EQ(json.dump(), R"({"a":1,"b":2.5,"c":true,"d":"word","e":"7","f":[1,"x"],"g":null})");
}

TEST(Commands, AllHaveOneNameAndAboutText) {
  std::set<std::string> names;
  for (const auto& command : commands()) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
    EXPECT_GT(std::string(command.about).size(), 10u);
  }
}

TEST(SelfTest, CountsNanAsWrong) {
  EXPECT_FALSE((OpCheck{"op", "cpu", "float32", std::nan(""), 0, 1e-5}).ok());
  EXPECT_FALSE((OpCheck{"op", "cpu", "float32", 0, std::nan(""), 1e-5}).ok());
  EXPECT_TRUE((OpCheck{"op", "cpu", "float32", 1e-6, 1e-6, 1e-5}).ok());
}

}  // namespace
}  // namespace lrnn::cli
