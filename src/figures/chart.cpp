#include "figures/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lrnn::figures {

namespace {

double round_step(double lo, double hi, int count) {
  const double raw = (hi - lo) / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= raw * 0.999) return factor * power;
  return 10 * power;
}

// A range that can be divided: finite, in order, and not a single point.
void make_proper(double& lo, double& hi) {
  if (!std::isfinite(lo) || !std::isfinite(hi)) lo = 0, hi = 1;
  if (lo > hi) std::swap(lo, hi);
  const double size = std::max({std::abs(lo), std::abs(hi), 1e-9});
  if (hi - lo < 1e-9 * size) lo -= 0.5 * size, hi += 0.5 * size;
}

}  // namespace

double Scale::operator()(double x) const {
  const double part = log ? std::log(x / lo) / std::log(hi / lo) : (x - lo) / (hi - lo);
  return from + part * (to - from);
}

std::vector<Tick> ticks(double lo, double hi, int count) {
  make_proper(lo, hi);
  const double step = round_step(lo, hi, count);
  const int decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  std::vector<Tick> out;
  for (double i = std::ceil(lo / step - 1e-6); i * step <= hi + 1e-6 * step; ++i)
    out.push_back({i * step, fmt::format("{:.{}f}", i == 0 ? 0.0 : i * step, decimals)});
  return out;
}

std::vector<Tick> log_ticks(double lo, double hi, int count) {
  const double span = std::log2(hi / lo);
  double step = 1;
  while (span / step > count) step *= 2;
  std::vector<Tick> out;
  for (double e = std::ceil(std::log2(lo) - 1e-9); e <= std::log2(hi) + 1e-9; ++e)
    if (std::fmod(e, step) == 0) out.push_back({std::exp2(e), fmt::format("{:g}", std::exp2(e))});
  return out;
}

void round_out(double& lo, double& hi, int count) {
  make_proper(lo, hi);
  const double step = round_step(lo, hi, count);
  lo = std::floor(lo / step + 1e-6) * step;
  hi = std::ceil(hi / step - 1e-6) * step;
}

void Legend::add(const std::string& name, const Style& style) {
  constexpr double kRow = 20;
  const double width = line() + 10 + text_width(name, 12) + 18;
  if (x_ > left_ && x_ + width > right_) x_ = left_, y_ += kRow;
  entries_.push_back({name, style, x_, y_});
  x_ += width;
}

void Legend::draw(Svg& svg, double top) const {
  for (const auto& [name, style, x, row] : entries_) {
    const double y = top + row;
    if (kind_ == kLines) svg.polyline({{x, y}, {x + line(), y}}, style);
    svg.mark(x + line() / 2, y, style);
    svg.text(x + line() + 8, y + 4, name, Anchor::kStart);
  }
}

namespace {

constexpr double kSame = 1.2;   // pixels: closer than this, one line hides the other
constexpr double kAround = 10;  // pixels to either side in which it must do so
constexpr double kStep = 3;     // between lines that are drawn side by side
constexpr double kSpread = 10;  // of all of them together

// Whether `a` and `b` run level and on the same spot around x, at least at `least` of five places.
bool together(const Line& a, const Line& b, double x, double y, int least) {
  int seen = 0;
  for (const double at : {x - kAround, x - kAround / 2, x, x + kAround / 2, x + kAround}) {
    const auto one = height_at(a, at), other = height_at(b, at);
    if (!one || !other) continue;
    if (std::abs(*one - *other) > kSame || std::abs(*one - y) > kSame) return false;
    ++seen;
  }
  return seen >= least;
}

// To one side of a corner they may be level and hidden, though not to the other.
bool hidden(const Line& a, const Line& b, double x, double y) {
  return together(a, b, x - kAround, y, 2) || together(a, b, x + kAround, y, 2) ||
         together(a, b, x, y, 1);  // a point alone has no sides
}

}  // namespace

std::optional<double> height_at(const Line& line, double x) {
  for (const auto& piece : line) {
    if (piece.empty() || x < piece.front().first || x > piece.back().first) continue;
    const auto right = std::lower_bound(piece.begin(), piece.end(), x,
                                        [](const auto& p, double at) { return p.first < at; });
    if (right == piece.begin()) return right->second;
    const auto left = right - 1;
    const double width = right->first - left->first;
    const double part = width > 0 ? (x - left->first) / width : 1;
    return left->second + part * (right->second - left->second);
  }
  return {};
}

std::vector<std::vector<std::vector<double>>> shifts(const std::vector<Line>& lines) {
  std::vector<std::vector<std::vector<double>>> out;
  for (size_t i = 0; i < lines.size(); ++i) {
    out.emplace_back();
    for (const auto& piece : lines[i]) {
      out.back().emplace_back();
      for (const auto& [x, y] : piece) {
        int before = 0, all = 1;
        for (size_t j = 0; j < lines.size(); ++j)
          if (j != i && hidden(lines[i], lines[j], x, y)) ++all, before += j < i;
        const double step = all > 1 ? std::min(kStep, kSpread / (all - 1)) : 0;
        out.back().back().push_back((before - (all - 1) / 2.0) * step);
      }
    }
  }
  return out;
}

}  // namespace lrnn::figures
