#include "base/json.h"

#include <gtest/gtest.h>

namespace lrnn {
namespace {

std::string mistake(const std::string& text) {
  try {
    read_json<nlohmann::json>(text);
  } catch (const BadJson& e) {
    return e.what();
  }
  return "none";
}

TEST(Json, ReadsWhatIsRight) {
  EXPECT_EQ(read_json<nlohmann::json>(R"({"a":[1,{"b":2}],"c":{"b":3}})")["c"]["b"], 3);
  EXPECT_EQ(read_json<nlohmann::ordered_json>(R"({"b":1,"a":2})").dump(), R"({"b":1,"a":2})");
}

TEST(Json, SaysWhatIsWrong) {
  EXPECT_EQ(mistake(R"({"a":1,"a":2})"), "the key 'a' comes twice");
  EXPECT_EQ(mistake(R"([{"a":1},{"a":1}])"), "none");
  EXPECT_EQ(mistake(R"({"b":{"a":1},"a":1,"b":2})"), "the key 'b' comes twice");
  EXPECT_EQ(mistake("[[[[1]]]]"), "none");
  EXPECT_EQ(mistake("[[[[[1]]]]]"), "it is nested too deeply");
  EXPECT_EQ(mistake(std::string(100000, '[')), "it is nested too deeply");
  EXPECT_EQ(mistake("[1e999999]"), "a number in it is too large for any type");
  EXPECT_EQ(mistake("[1,\n 2"), "this is not JSON: line 2, column 3");
  EXPECT_EQ(mistake("[1] 2"), "this is not JSON: line 1, column 5");
  EXPECT_EQ(mistake("\xff"), "this is not JSON: line 1, column 1");
  EXPECT_EQ(mistake(""), "this is not JSON: line 1, column 1");
}

}  // namespace
}  // namespace lrnn
