#include "figures/style.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <string>

namespace lrnn::figures {
namespace {

using Colour = std::array<double, 3>;

const std::vector<std::string> kModels = {
    "attention",       "mlstm",           "slstm",           "mamba [-1,1]", "delta_net [-1,1]",
    "delta_product 2", "delta_product 3", "delta_product 4", "gla",          "rwkv7",
    "diagonal",        "full_matrix",     "matrix_product",  "titans [0,1]", "ttt"};

Colour linear(const std::string& hex) {
  Colour out;
  for (size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    out[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return out;
}

Colour times(const std::array<Colour, 3>& matrix, const Colour& v) {
  Colour out;
  for (size_t i = 0; i < 3; ++i)
    out[i] = std::clamp(matrix[i][0] * v[0] + matrix[i][1] * v[1] + matrix[i][2] * v[2], 0.0, 1.0);
  return out;
}

Colour lab(const Colour& v) {
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f((0.4124 * v[0] + 0.3576 * v[1] + 0.1805 * v[2]) / 0.95047),
               y = f(0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]),
               z = f((0.0193 * v[0] + 0.1192 * v[1] + 0.9505 * v[2]) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

// Seen with three kinds of cones, without the long and without the middle ones (Machado et al.
// 2009): the least distance in CIELAB.
double distance(const std::string& a, const std::string& b) {
  const std::vector<std::array<Colour, 3>> eyes = {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                                                   {{{0.152286, 1.052583, -0.204868},
                                                     {0.114503, 0.786281, 0.099216},
                                                     {-0.003882, -0.048116, 1.051998}}},
                                                   {{{0.367322, 0.860646, -0.227968},
                                                     {0.280085, 0.672501, 0.047413},
                                                     {-0.011820, 0.042940, 0.968881}}}};
  double least = 1e9;
  for (const auto& eye : eyes) {
    const Colour p = lab(times(eye, linear(a))), q = lab(times(eye, linear(b)));
    least = std::min(least, std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]));
  }
  return least;
}

double contrast(const std::string& a, const std::string& b) {
  const auto light = [](const std::string& hex) {
    const Colour v = linear(hex);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] + 0.05;
  };
  return std::max(light(a) / light(b), light(b) / light(a));
}

TEST(Style, ModelsAreToldApartByColourBlindReaders) {
  for (size_t i = 0; i < kModels.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      EXPECT_GT(distance(style_of(kModels[i]).colour, style_of(kModels[j]).colour), 17)
          << kModels[i] << ", " << kModels[j];
}

TEST(Style, IsSeenOnWhiteAndOnDarkPaper) {
  for (const auto& model : kModels) {
    EXPECT_GT(contrast(style_of(model).colour, "#ffffff"), 2.2) << model;
    EXPECT_GT(contrast(style_of(model).colour, "#16181c"), 2.2) << model;
  }
}

TEST(Style, TwinsShareAColourAndNotADash) {
  for (const std::string model : {"mamba", "delta_net", "delta_product 3", "gla", "nobody's"}) {
    const Style inside = style_of(model + " [0,1]"), both = style_of(model + " [-1,1]");
    EXPECT_STREQ(inside.colour, both.colour) << model;
    EXPECT_STREQ(both.dash, "") << model;
    EXPECT_STRNE(inside.dash, "") << model;
  }
  EXPECT_EQ(style_of("delta_net gated [0,1]"), style_of("delta_net [0,1]"));
  EXPECT_FALSE(style_of("delta_product 2") == style_of("delta_product 3"));
}

TEST(Style, OfAKeyNobodyKnowsIsTheSameEveryTime) {
  EXPECT_EQ(style_of("leaky"), style_of("leaky"));
  std::set<std::pair<std::string, int>> looks;
  for (const char* key : {"leaky", "hyena", "retnet", "hgrn", "gsa"})
    looks.emplace(style_of(key).colour, style_of(key).mark);
  EXPECT_GT(looks.size(), 3u);
  EXPECT_NO_THROW(style_of(""));
}

TEST(Style, PublishedIsThinAndOpen) {
  const Style ours = style_of("mamba [0,1]"), theirs = published(ours);
  EXPECT_TRUE(theirs.open && !ours.open);
  EXPECT_LT(theirs.width, ours.width);
  EXPECT_STREQ(theirs.colour, ours.colour);
  EXPECT_STREQ(theirs.dash, ours.dash);
}

TEST(Style, SeveralOfOneModelGetMarksOfTheirOwn) {
  const auto all = told_apart({style_of("mamba"), style_of("delta_net"), style_of("delta_net"),
                               style_of("delta_net"), style_of("mamba [0,1]")});
  EXPECT_EQ(all[0], style_of("mamba"));
  EXPECT_EQ(all[1], style_of("delta_net"));
  EXPECT_EQ(all[4], style_of("mamba [0,1]"));
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_STREQ(all[i].colour, all[1].colour);
    for (size_t j = 1; j < i; ++j) EXPECT_NE(all[i].mark, all[j].mark);
  }
}

}  // namespace
}  // namespace lrnn::figures
