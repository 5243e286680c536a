#include "figures/style.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace lrnn::figures {
namespace {

enum Mark { kCircle, kSquare, kTriangle, kDiamond, kTip, kCross };

struct Known {
  std::string_view key;
  Style style;
};

// Any two of these models are 17 or more apart in CIELAB, to protanopes and deuteranopes as well.
constexpr std::array<Known, 19> kKnown = {{
    {"attention", {"#5A5A5A", "", kCircle}},
    {"mlstm", {"#CC79A7", "", kSquare}},
    {"slstm", {"#E69F00", "", kTriangle}},
    {"mamba", {"#009E73", "", kDiamond}},
    {"delta_net", {"#0072B2", "", kCircle}},
    {"delta_product 2", {"#D55E00", "", kSquare}},
    {"delta_product 3", {"#56B4E9", "", kTriangle}},
    {"delta_product 4", {"#6622EE", "", kDiamond}},
    {"gla", {"#8FB050", "", kTip}},
    {"rwkv7", {"#4477FF", "", kCross}},
    {"titans", {"#7722BB", "", kCircle}},
    {"ttt", {"#66BB77", "", kSquare}},
    {"diagonal", {"#7799FF", "", kTip}},
    {"full_matrix", {"#884422", "", kCross}},
    {"matrix_product", {"#555577", "", kSquare}},
    // Kernels of one model lie on top of each other, so each has a pattern.
    {"kernel float32", {"#5A5A5A", "", kCircle}},
    {"kernel exact", {"#D55E00", "7 4", kSquare}},
    {"kernel accurate", {"#009E73", "2 3", kTriangle}},
    {"kernel fast", {"#CC79A7", "9 3 2 3", kDiamond}},
}};
constexpr const char* kDashed = "7 4";

// FNV-1a.
uint64_t hash(std::string_view text) {
  uint64_t out = 0xcbf29ce484222325;
  for (const char c : text) out = (out ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return out;
}

}  // namespace

bool Style::operator==(const Style& other) const {
  return std::string_view(colour) == other.colour && std::string_view(dash) == other.dash &&
         mark == other.mark && open == other.open && width == other.width;
}

Style style(size_t i) {
  static constexpr std::array<Style, kStyles> kByPlace = {{{"#0072B2", "", kCircle},
                                                           {"#D55E00", "7 4", kSquare},
                                                           {"#009E73", "2 3", kTriangle},
                                                           {"#CC79A7", "9 3 2 3", kDiamond},
                                                           {"#E69F00", "4 2", kTip},
                                                           {"#56B4E9", "1 2", kCross},
                                                           {"#7F7F7F", "12 4", kTriangle}}};
  return kByPlace[i % kByPlace.size()];
}

Style style_of(std::string_view key) {
  const size_t bracket = key.find(" [");
  const bool positive = bracket != key.npos && key.substr(bracket) == " [0,1]";
  const std::string_view whole = key.substr(0, bracket);
  // The longest beginning that is known: "delta_net gated" is a "delta_net".
  for (std::string_view words = whole; !words.empty();
       words = words.substr(0, words.rfind(' ') == words.npos ? 0 : words.rfind(' ')))
    for (const auto& [name, look] : kKnown)
      if (name == words) {
        Style out = look;
        if (positive) out.dash = kDashed;
        return out;
      }
  const uint64_t number = hash(whole);
  Style out = style(number % kStyles);
  out.mark = int(number / kStyles % kMarks), out.dash = positive ? kDashed : "";
  return out;
}

Style published(Style style) {
  style.open = true, style.width = 1.2;
  return style;
}

std::vector<Style> told_apart(std::vector<Style> styles) {
  for (size_t i = 0; i < styles.size(); ++i) {
    const auto taken = [&] {
      return std::find(styles.begin(), styles.begin() + ptrdiff_t(i), styles[i]) !=
             styles.begin() + ptrdiff_t(i);
    };
    for (int tries = 1; tries < kMarks && taken(); ++tries)
      styles[i].mark = (styles[i].mark + 1) % kMarks;
  }
  return styles;
}

}  // namespace lrnn::figures
