#include "figures/axis.h"

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

}  // namespace lrnn::figures
