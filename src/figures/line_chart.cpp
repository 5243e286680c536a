#include <algorithm>
#include <cmath>
#include <limits>

#include "figures/chart.h"
#include "figures/draw.h"

namespace lrnn::figures {
namespace {

constexpr double kWidth = 720, kLeft = 64, kRight = 20;

bool finite(const Point& p, bool log_x) {
  return std::isfinite(p.x) && std::isfinite(p.y) && (!log_x || p.x > 0);
}

// The pieces of a series between its gaps, and the band around each.
struct Drawn {
  Line line;
  std::vector<Piece> upper, lower;
};

Drawn place(const Series& series, const Scale& sx, const Scale& sy) {
  Drawn out;
  bool gap = true;
  for (const auto& p : series.points) {
    if (!finite(p, sx.log)) {
      gap = true;
      continue;
    }
    if (gap) out.line.emplace_back(), out.upper.emplace_back(), out.lower.emplace_back();
    gap = false;
    const double x = sx(p.x), lo = std::isfinite(p.lo) ? p.lo : p.y,
                 hi = std::isfinite(p.hi) ? p.hi : p.y;
    out.line.back().emplace_back(x, sy(p.y));
    out.upper.back().emplace_back(x, sy(hi)), out.lower.back().emplace_back(x, sy(lo));
  }
  return out;
}

void draw_piece(Svg& svg, const Piece& line, Piece upper, const Piece& lower, const Style& look) {
  if (line.size() > 1) {
    bool banded = false;
    for (size_t i = 0; i < upper.size(); ++i) banded |= upper[i].second != lower[i].second;
    if (banded) {
      upper.insert(upper.end(), lower.rbegin(), lower.rend());
      svg.band(upper, look);
    }
    svg.polyline(line, look);
  }
  // Marks for every point would hide a long line; a single point has nothing else to show it.
  const size_t every = std::max<size_t>(1, line.size() / 24);
  for (size_t i = 0; i < line.size(); i += every) svg.mark(line[i].first, line[i].second, look);
}

// Whether some of them had to be moved apart.
bool draw_series(Svg& svg, const std::vector<Series>& series, const std::vector<Style>& looks,
                 const Scale& sx, const Scale& sy) {
  std::vector<Drawn> all;
  std::vector<Line> lines;
  for (const auto& s : series) all.push_back(place(s, sx, sy)), lines.push_back(all.back().line);
  const auto moved = shifts(lines);
  bool any = false;
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t piece = 0; piece < lines[i].size(); ++piece) {
      for (size_t at = 0; at < lines[i][piece].size(); ++at) {
        lines[i][piece][at].second += moved[i][piece][at];
        any = any || moved[i][piece][at] != 0;
      }
      draw_piece(svg, lines[i][piece], all[i].upper[piece], all[i].lower[piece], looks[i]);
    }
  return any;
}

std::vector<Style> looks_of(const std::vector<Series>& series) {
  std::vector<Style> out;
  for (const auto& s : series) out.push_back(s.style ? *s.style : style(out.size()));
  return told_apart(out);
}

// The range of x and y that shows every point, band and marker.
void ranges(const LineChart& chart, Scale& sx, Scale& sy) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  double x0 = kInf, x1 = -kInf, y0 = kInf, y1 = -kInf;
  const auto see = [](double v, double& lo, double& hi) {
    if (std::isfinite(v)) lo = std::min(lo, v), hi = std::max(hi, v);
  };
  for (const auto& s : chart.series)
    for (const auto& p : s.points)
      if (finite(p, chart.log_x))
        see(p.x, x0, x1), see(p.y, y0, y1), see(p.lo, y0, y1), see(p.hi, y0, y1);
  for (const auto& m : chart.markers)
    if (!chart.log_x || m.x > 0) see(m.x, x0, x1);
  if (chart.y) see(chart.y->first, y0, y1), see(chart.y->second, y0, y1);
  round_out(y0, y1, 15);
  if (!(x0 < x1)) {
    if (!std::isfinite(x0)) x0 = x1 = 1;
    const double pad = chart.log_x ? 0 : std::max(1.0, std::abs(x0) / 2);
    x0 = chart.log_x ? x0 / 2 : x0 - pad, x1 = chart.log_x ? x1 * 2 : x1 + pad;
  }
  sx.lo = x0, sx.hi = x1, sx.log = chart.log_x, sy.lo = y0, sy.hi = y1;
}

void draw_axes(Svg& svg, const LineChart& chart, const Scale& sx, const Scale& sy, double top,
               double bottom) {
  for (const auto& t : ticks(sy.lo, sy.hi, 5)) {
    svg.line(kLeft, sy(t.at), kWidth - kRight, sy(t.at));
    svg.text(kLeft - 8, sy(t.at) + 4, t.label, Anchor::kEnd, 12, true);
  }
  auto marks = chart.log_x ? log_ticks(sx.lo, sx.hi, 8) : ticks(sx.lo, sx.hi, 8);
  for (const auto& t : marks) {
    svg.axis(sx(t.at), bottom, sx(t.at), bottom + 5);
    svg.text(sx(t.at), bottom + 19, t.label, Anchor::kMiddle, 12, true);
  }
  svg.axis(kLeft, bottom, kWidth - kRight, bottom);
  svg.axis(kLeft, top, kLeft, bottom);
  svg.text((kLeft + kWidth - kRight) / 2, bottom + 40, chart.x_label, Anchor::kMiddle);
  svg.text(18, (top + bottom) / 2, chart.y_label, Anchor::kMiddle, 12, false, true);
}

}  // namespace

std::string draw(const LineChart& chart) {
  const double legend_top = 46;
  const auto looks = looks_of(chart.series);
  Legend legend(Legend::kLines, kLeft, kWidth - kRight);
  for (size_t i = 0; i < looks.size(); ++i) legend.add(chart.series[i].name, looks[i]);
  const double top = legend_top + legend.height() + 42, bottom = top + chart.height;
  Scale sx{.from = kLeft, .to = kWidth - kRight}, sy{.from = bottom, .to = top};
  ranges(chart, sx, sy);

  Svg svg(kWidth, bottom + 54, chart.title);
  svg.heading(kLeft, 24, chart.title);
  legend.draw(svg, legend_top);
  draw_axes(svg, chart, sx, sy, top, bottom);
  // Labels sit above the plot, where no curve can run through them.
  for (const auto& m : chart.markers) {
    if (chart.log_x && m.x <= 0) continue;
    const double x = sx(m.x), half = text_width(m.label, 11) / 2;
    svg.axis(x, top - 8, x, bottom);
    if (m.label.empty()) continue;
    svg.text(std::clamp(x, kLeft + half, kWidth - kRight - half), top - 12, m.label,
             Anchor::kMiddle, 11, true);
  }
  if (draw_series(svg, chart.series, looks, sx, sy))
    svg.text(kWidth - kRight, bottom + 40, "equal lines are drawn side by side", Anchor::kEnd, 10,
             true);
  return svg.str();
}

}  // namespace lrnn::figures
