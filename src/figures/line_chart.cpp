#include "figures/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "figures/axis.h"
#include "figures/svg.h"

namespace lrnn::figures {
namespace {

constexpr double kWidth = 720, kLeft = 64, kRight = 20, kPlot = 300, kLegendRow = 20;

bool finite(const Point& p, bool log_x) {
  return std::isfinite(p.x) && std::isfinite(p.y) && (!log_x || p.x > 0);
}

// Legend entries placed left to right, in as many rows as they need.
struct Place {
  double x, y;
};
std::vector<Place> legend(const std::vector<Series>& series, double top) {
  std::vector<Place> out;
  double x = kLeft, y = top;
  for (const auto& s : series) {
    const double width = 46 + text_width(s.name, 12) + 18;
    if (x > kLeft && x + width > kWidth - kRight) x = kLeft, y += kLegendRow;
    out.push_back({x, y});
    x += width;
  }
  return out;
}

void draw_legend(Svg& svg, const std::vector<Series>& series, const std::vector<Place>& places) {
  for (size_t i = 0; i < series.size(); ++i) {
    const auto [x, y] = places[i];
    svg.polyline({{x, y}, {x + 36, y}}, style(i));
    svg.mark(x + 18, y, style(i));
    svg.text(x + 44, y + 4, series[i].name, Anchor::kStart);
  }
}

void draw_series(Svg& svg, const Series& series, const Style& look, const Scale& sx,
                 const Scale& sy) {
  std::vector<std::pair<double, double>> line, upper, lower;
  const auto flush = [&] {
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
    line.clear(), upper.clear(), lower.clear();
  };
  for (const auto& p : series.points) {
    if (!finite(p, sx.log)) {
      flush();
      continue;
    }
    const double x = sx(p.x), lo = std::isfinite(p.lo) ? p.lo : p.y,
                 hi = std::isfinite(p.hi) ? p.hi : p.y;
    line.emplace_back(x, sy(p.y)), upper.emplace_back(x, sy(hi)), lower.emplace_back(x, sy(lo));
  }
  flush();
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
  const auto places = legend(chart.series, legend_top);
  const double top = (places.empty() ? legend_top : places.back().y) + 38, bottom = top + kPlot;
  Scale sx{.from = kLeft, .to = kWidth - kRight}, sy{.from = bottom, .to = top};
  ranges(chart, sx, sy);

  Svg svg(kWidth, bottom + 54, chart.title);
  svg.heading(kLeft, 24, chart.title);
  draw_legend(svg, chart.series, places);
  draw_axes(svg, chart, sx, sy, top, bottom);
  // Labels sit above the plot, where no curve can run through them.
  for (const auto& m : chart.markers) {
    if (chart.log_x && m.x <= 0) continue;
    const double x = sx(m.x), half = text_width(m.label, 11) / 2;
    svg.axis(x, top - 4, x, bottom);
    svg.text(std::clamp(x, kLeft + half, kWidth - kRight - half), top - 8, m.label, Anchor::kMiddle,
             11, true);
  }
  for (size_t i = 0; i < chart.series.size(); ++i)
    draw_series(svg, chart.series[i], style(i), sx, sy);
  return svg.str();
}

}  // namespace lrnn::figures
