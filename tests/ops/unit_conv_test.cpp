#include "ops/short_conv/short_conv.h"

#include <gtest/gtest.h>

#include "tests/ops/unit_conv_cases.h"

namespace lrnn {
namespace {

TEST(UnitConv, EqualsTheDefinition) { expect_unit_conv(kUnitConvCases, torch::kCPU); }

TEST(UnitConv, SaysWhatIsWrong) {
  const auto x = torch::zeros({1, 2, 6}), weight = torch::zeros({6, 1, 3});
  const auto message = [](const ops::UnitConv& in) {
    try {
      ops::unit_conv(in);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(message({.x = x, .weight = weight, .state = {}, .sizes = {6}, .units = 5, .group = 2})
                .find("5 of 6 channels are not whole units of 2"),
            std::string::npos);
  const auto state = torch::zeros({1, 6, 3}).requires_grad_();
  EXPECT_NE(message({.x = x, .weight = weight, .state = state, .sizes = {6}})
                .find("no gradient of the state"),
            std::string::npos);
  EXPECT_NE(
      message({.x = x, .weight = weight, .state = {}, .sizes = {4}}).find("pieces of 4 channels"),
      std::string::npos);
}

}  // namespace
}  // namespace lrnn
