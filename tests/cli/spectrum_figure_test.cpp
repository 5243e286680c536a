#include <gtest/gtest.h>

#include "cli/figures.h"
#include "figures/style.h"
#include "tests/experiments/folder.h"

namespace lrnn::cli {
namespace {

using experiments::HeadSpectrum;

tasks::TaskPtr parity() { return tasks::make(Section::from_text("{name: parity}", "x")); }
tasks::TaskPtr group() { return tasks::make(Section::from_text("{name: group, group: S4}", "x")); }

HeadSpectrum head_with(const std::vector<std::complex<double>>& values,
                       const std::vector<int64_t>& tokens) {
  HeadSpectrum out;
  out.layer = out.head = 1, out.values = values, out.tokens = tokens;
  return out;
}

TEST(SpectrumFigure, LettersHaveColoursOfTheirOwn) {
  const auto task = parity();
  const auto letters = task->letters();
  for (const double imaginary : {0.0, 0.5}) {  // strips, planes
    const auto svg =
        spectrum_figure({{"run",
                          {head_with({{0.5, imaginary}, {-1, 0}}, {letters[0], letters[1]})},
                          "mamba",
                          task.get()}});
    EXPECT_HAS(svg, ">at 0<");
    EXPECT_HAS(svg, ">at 1<");
    for (const size_t i : {0, 1}) EXPECT_HAS(svg, figures::style(i).colour);
    EXPECT_EQ(svg.find("other tokens"), std::string::npos);
  }
  const auto other = spectrum_figure(
      {{"run", {head_with({{0.5, 0}, {-1, 0}}, {0, letters[1]})}, "mamba", task.get()}});
  EXPECT_HAS(other, "other tokens") << "token 0 is no letter of parity";
}

TEST(SpectrumFigure, LargeAlphabetsShareTheColourOfTheModel) {
  const auto task = group();
  const auto svg =
      spectrum_figure({{"run", {head_with({{-1, 0}}, {3})}, "delta_product 2", task.get()}});
  EXPECT_HAS(svg, "all 24 letters");
  EXPECT_HAS(svg, figures::style_of("delta_product 2").colour);
}

TEST(SpectrumFigure, SaysWhenTheNumbersAreNoEigenvaluesOfAMatrix) {
  const auto task = parity();
  auto head = head_with({{0.5, 0}}, {1});
  head.kind = experiments::Kind::kForgetGate;
  EXPECT_HAS(spectrum_figure({{"run", {head}, "mlstm", task.get()}}), "Forget gates in use: run");
  head.kind = experiments::Kind::kJacobian;
  EXPECT_HAS(spectrum_figure({{"run", {head}, "slstm", task.get()}}),
             "Eigenvalues of the Jacobian: run");
}

}  // namespace
}  // namespace lrnn::cli
