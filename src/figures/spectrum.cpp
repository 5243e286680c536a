#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "figures/chart.h"
#include "figures/draw.h"

// Eigenvalues as pictures: shares on a line from -1 to 1, or dots in the unit circle.
namespace lrnn::figures {
namespace {

constexpr double kHeading = 24, kLegendTop = 46, kLegendGap = 28;

Legend legend_of(const std::vector<Letter>& letters, double left, double right) {
  Legend out(Legend::kMarksOnly, left, right);
  for (const auto& letter : letters) out.add(letter.name, letter.style);
  return out;
}
// What it takes between the heading and the picture.
double room_for(const std::vector<Letter>& letters, const Legend& legend) {
  return letters.empty() ? 0 : legend.height() + kLegendGap;
}

Style style_of(const std::vector<Letter>& letters, size_t i) {
  return i < letters.size() ? letters[i].style : style(0);
}

}  // namespace

std::vector<double> shares(const std::vector<double>& values, size_t bins, size_t all) {
  std::vector<double> out(bins, 0);
  size_t count = 0;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    // A float32 key has length 1 within rounding: an eigenvalue of -6e-8 is a 0, not a negative
    // one.
    const double rounded = std::clamp(x + 1e-6, -1.0, 1.0);
    const double at = (rounded + 1) / 2 * static_cast<double>(bins);
    ++out[std::min(static_cast<size_t>(at), bins - 1)], ++count;
  }
  for (double& share : out) share /= static_cast<double>(std::max<size_t>(all ? all : count, 1));
  return out;
}

std::string bars(const std::vector<double>& shares) {
  static const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double top = shares.empty() ? 0 : *std::max_element(shares.begin(), shares.end());
  std::string out;
  for (const double share : shares)
    out += share <= 0 ? "·" : kBlocks[std::min(7, static_cast<int>(8 * std::sqrt(share / top)))];
  return out;
}

std::string draw(const Strips& strips) {
  constexpr double kRow = 34, kWidth = 720, kRight = 24;
  double left = 70;
  for (const auto& row : strips.rows) left = std::max(left, text_width(row.name, 12) + 24);
  const auto legend = legend_of(strips.letters, 20, kWidth - kRight);
  const double top = 64 + room_for(strips.letters, legend);
  const double bottom = top + kRow * static_cast<double>(std::max<size_t>(strips.rows.size(), 1));
  const Scale sx{.lo = -1, .hi = 1, .from = left, .to = kWidth - kRight};

  Svg svg(kWidth, bottom + 54, strips.title);
  svg.heading(20, kHeading, strips.title);
  legend.draw(svg, kLegendTop);
  svg.rectangle(sx(0), top, sx(1) - sx(0), bottom - top, "#7F7F7F", 0.12);
  svg.text(sx(0.5), top - 8, "range [0,1] reaches only this half", Anchor::kMiddle, 11, true);
  svg.text(sx(-1), top - 8, "reflection", Anchor::kStart, 11, true);
  for (const auto& t : ticks(-1, 1, 4)) {
    svg.line(sx(t.at), top, sx(t.at), bottom);
    svg.text(sx(t.at), bottom + 19, t.label, Anchor::kMiddle, 12, true);
  }
  svg.axis(sx(0), top, sx(0), bottom);
  for (size_t i = 0; i < strips.rows.size(); ++i) {
    const auto& row = strips.rows[i];
    const double base = top + kRow * static_cast<double>(i + 1) - 4;
    const size_t bins = row.shares.empty() ? 0 : row.shares[0].size();
    svg.text(left - 12, base - 6, row.name, Anchor::kEnd);
    svg.line(sx(-1), base, sx(1), base);
    for (size_t b = 0; b < bins; ++b) {
      double all = 0;
      for (const auto& of_letter : row.shares) all += of_letter[b] > 0 ? of_letter[b] : 0;
      if (!(all > 0)) continue;
      // Roots, so that a value used by one token in a hundred can still be seen.
      const double height = std::max(1.5, (kRow - 8) * std::sqrt(all));
      const double x = sx(-1 + 2 * static_cast<double>(b) / static_cast<double>(bins));
      const double width = std::max(1.5, (sx(1) - sx(-1)) / static_cast<double>(bins) - 0.5);
      double y = base;  // letters are piled up, each with its part of the bar
      for (size_t letter = 0; letter < row.shares.size(); ++letter) {
        if (!(row.shares[letter][b] > 0)) continue;
        const double part = height * row.shares[letter][b] / all;
        y -= part;
        svg.rectangle(x, y, width, part, style_of(strips.letters, letter).colour, 1);
      }
    }
  }
  svg.text((left + kWidth - kRight) / 2, bottom + 42, strips.x_label, Anchor::kMiddle);
  return svg.str();
}

std::string draw(const Planes& figure) {
  constexpr double kCell = 172, kRadius = 66, kMargin = 16;
  const size_t columns = std::clamp<size_t>(figure.planes.size(), 1, 4);
  const size_t rows = (std::max<size_t>(figure.planes.size(), 1) + columns - 1) / columns;
  const double width =
      2 * kMargin + std::max(kCell * static_cast<double>(columns), text_width(figure.title, 14));
  const auto legend = legend_of(figure.letters, kMargin, width - kMargin);
  const double top = 40 + room_for(figure.letters, legend);
  Svg svg(width, top + (kCell + 16) * static_cast<double>(rows) + kMargin, figure.title);
  svg.heading(kMargin, kHeading, figure.title);
  legend.draw(svg, kLegendTop);
  for (size_t i = 0; i < figure.planes.size(); ++i) {
    const double x = kMargin + kCell * (static_cast<double>(i % columns) + 0.5);
    const double y = top + 22 + (kCell + 16) * static_cast<double>(i / columns) + kRadius + 8;
    svg.text(x, y - kRadius - 18, figure.planes[i].name, Anchor::kMiddle);
    svg.line(x - kRadius - 8, y, x + kRadius + 8, y);
    svg.line(x, y - kRadius - 8, x, y + kRadius + 8);
    svg.circle(x, y, kRadius);
    svg.text(x - kRadius - 3, y + 14, "-1", Anchor::kEnd, 10, true);
    svg.text(x + kRadius + 3, y + 14, "1", Anchor::kStart, 10, true);
    svg.text(x + 4, y - kRadius - 3, "i", Anchor::kStart, 10, true);
    // Later letters are smaller, so that an earlier one shows around them on the same spot.
    for (size_t letter = 0; letter < std::max<size_t>(1, figure.letters.size()); ++letter)
      for (const auto& [z, of] : figure.planes[i].dots)
        if (of == letter && std::isfinite(z.real()) && std::isfinite(z.imag()))
          svg.mark(x + kRadius * z.real(), y - kRadius * z.imag(), style_of(figure.letters, of),
                   figure.letters.empty() ? 2 : std::max(1.4, 3.2 - 0.6 * double(of)), 0.35);
  }
  return svg.str();
}

}  // namespace lrnn::figures
