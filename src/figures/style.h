#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

// How lines, dots and bars look. A thing has one look in every figure: whoever draws a model asks
// for the look of its name, not for the next colour.
namespace lrnn::figures {

// A colour that colour-blind readers can tell from the others (Okabe and Ito 2008 first, then
// colours at least as far from these), and a dash pattern and a mark for those who print in black
// and white.
struct Style {
  const char *colour, *dash;
  int mark;  // circle, square, triangle, diamond, triangle on its tip, cross
  bool open = false;
  double width = 2;
  bool operator==(const Style&) const;
};
constexpr int kMarks = 6;

// Of things that have no name of their own, by their place: seven different ones, then again.
Style style(size_t i);
constexpr size_t kStyles = 7;

// Of a model or a kernel by its key: what it is, then words that narrow it down, then the range of
// its eigenvalues, such as "delta_product 2 [-1,1]" or "attention". Twins have one colour; the one
// in [0,1] is dashed. A key nobody knows has a look of its own, too, the same every time.
Style style_of(std::string_view key);

// The same thin and with open marks: another's numbers beside ours.
Style published(Style style);

// Where several would look the same, the later ones get marks of their own.
std::vector<Style> told_apart(std::vector<Style> styles);

}  // namespace lrnn::figures
