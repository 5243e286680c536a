#include "figures/apart.h"

#include <algorithm>
#include <cmath>

namespace lrnn::figures {
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
