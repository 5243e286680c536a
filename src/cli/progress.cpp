#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "cli/output.h"

namespace lrnn::cli {
namespace {

constexpr double kPlainSeconds = 5;

std::string numbers(const experiments::Progress& p, double left) {
  return fmt::format("{}/{}  {:.1f} steps/s  {}  {} left", p.step, p.steps, p.steps_per_second,
                     learned(p), duration(left));
}

}  // namespace

std::string cut_line(const std::string& text, int width) {
  size_t at = 0;
  for (int n = 0; at < text.size(); ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80 && ++n > width) break;
  return text.substr(0, at);
}

std::string learned(const experiments::Progress& p) {
  auto out = fmt::format("loss {:.4f}  accuracy {:.3f}", p.loss, p.accuracy);
  return p.eval_accuracy < 0 ? out : out + fmt::format("  eval {:.3f}", p.eval_accuracy);
}

std::string filled_bar(double share, int width) {
  const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * width + 0.5);
  std::string out = "[";
  for (int i = 0; i < width; ++i) out += i < full ? "█" : "░";
  return out + "]";
}

ProgressBar::ProgressBar(bool quiet) : quiet_(quiet), bar_(!quiet && on_terminal(2)) {}

bool ProgressBar::due(bool news) {
  const auto now = std::chrono::steady_clock::now();
  const bool first = last_ == std::chrono::steady_clock::time_point{};
  if (quiet_ ||
      (!first && !news && std::chrono::duration<double>(now - last_).count() < kPlainSeconds))
    return false;
  last_ = now;
  return true;
}

// From the average since the first report, which counts the evaluations in and does not jump about.
double ProgressBar::seconds_left(const experiments::Progress& p) {
  const auto now = std::chrono::steady_clock::now();
  if (first_step_ < 0) first_step_ = p.step, begin_ = now;
  const double passed = std::chrono::duration<double>(now - begin_).count();
  const double rate =
      p.step > first_step_ ? double(p.step - first_step_) / passed : p.steps_per_second;
  return rate > 0 ? double(p.steps - p.step) / rate : -1;
}

void ProgressBar::show(const experiments::Progress& p) {
  const double left = seconds_left(p);
  if (bar_) return show(filled_bar(double(p.step) / double(p.steps), 20) + " " + numbers(p, left));
  const bool news = p.eval_accuracy != eval_shown_ || p.step == p.steps;
  eval_shown_ = p.eval_accuracy;
  if (due(news)) say("step " + numbers(p, left));
}

void ProgressBar::show(const std::string& line) {
  if (!bar_) return;
  std::cerr << "\r\x1b[K" << cut_line(line, terminal_width() - 1) << std::flush;
  drawn_ = true;
}

void ProgressBar::clear() {
  if (drawn_) std::cerr << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

}  // namespace lrnn::cli
