#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "cli/output.h"

namespace lrnn::cli {

namespace {

constexpr double kPlainSeconds = 5;

// Steps are no measure of a language model's speed.
std::string speed(const experiments::Progress& p) {
  if (p.text)
    return fmt::format("{} tokens/s  {}", thousands(int64_t(p.speed.tokens_per_second)),
                       p.speed.mfu >= 0 ? fmt::format("MFU {:.1f} %", 100 * p.speed.mfu)
                                        : fmt::format("{:.3g} TFLOP/s", p.speed.flops / 1e12));
  return fmt::format("{:.1f} steps/s", p.steps_per_second);
}

std::string numbers(const experiments::Progress& p, double left) {
  return fmt::format("{}/{}  {}  {}  {} left", p.step, p.steps, speed(p), learned(p),
                     duration(left));
}

}  // namespace

std::string cut_line(const std::string& text, int width) {
  size_t at = 0;
  for (int n = 0; at < text.size(); ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80 && ++n > width) break;
  return text.substr(0, at);
}

std::string learned(const experiments::Progress& p) {
  if (p.text)
    return fmt::format("loss {:.4f}", p.loss) +
           (p.eval_accuracy < 0 ? "" : fmt::format("  eval {:.4f}", p.eval_loss));
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

namespace {

constexpr double kReproducePlainSeconds = 30;
using experiments::RunProgress;

}  // namespace

std::string run_name(const experiments::Suite& suite, const experiments::PlannedRun& run,
                     bool with_lr) {
  const auto& cell = suite.cells[run.cell];
  std::string out = fmt::format("{}, {}, seed {}", cell.task, cell.model, run.seed);
  return with_lr ? fmt::format("{}, lr {:g}", out, run.lr) : out;
}

RunsProgress::RunsProgress(const experiments::Suite& suite,
                           const std::vector<experiments::PlannedRun>& runs, int64_t jobs,
                           bool quiet)
    : suite_(suite), runs_(runs), jobs_(jobs), quiet_(quiet), terminal_(on_terminal(2)) {}

std::vector<std::string> RunsProgress::lines(const std::vector<RunProgress>& all) const {
  std::vector<std::string> out;
  double share = 0;
  int64_t done = 0, failed = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& p = all[i];
    const bool over = p.state == RunProgress::kDone || p.state == RunProgress::kFailed;
    const double part = over ? 1 : double(p.now.step) / double(p.now.steps);
    share += part / double(all.size());
    done += p.state == RunProgress::kDone, failed += p.state == RunProgress::kFailed;
    const bool lr = runs_[i].lr != runs_[0].lr;
    const auto name = run_name(suite_, runs_[i], lr);
    if (p.state == RunProgress::kMeasuring) out.push_back(name + ": accuracy by length");
    if (p.state != RunProgress::kRunning) continue;
    const double rate = p.now.steps_per_second;
    const double left = rate > 0 ? double(p.now.steps - p.now.step) / rate : -1;
    out.push_back(fmt::format("{} {}: {}/{}{}  {} left", filled_bar(part, 10), name, p.now.step,
                              p.now.steps, rate > 0 ? "  " + learned(p.now) : "", duration(left)));
  }
  out.push_back(fmt::format("{} {} of {} runs done{}  {} left", filled_bar(share, 20), done,
                            all.size(), failed ? fmt::format(", {} failed", failed) : "",
                            duration(experiments::seconds_left(runs_, all, jobs_))));
  return out;
}

void RunsProgress::show(const std::vector<RunProgress>& all, bool now) {
  if (quiet_) return;
  const auto time = std::chrono::steady_clock::now();
  const bool first = last_ == std::chrono::steady_clock::time_point{};
  const double passed = std::chrono::duration<double>(time - last_).count();
  if (!terminal_ && !first && !now && passed < kReproducePlainSeconds) return;
  last_ = time;
  if (terminal_) clear();
  const auto text = lines(all);
  for (const auto& line : text)
    std::cerr << (terminal_ ? cut_line(line, terminal_width() - 1) : line) << "\n";
  std::cerr << std::flush;
  if (terminal_) drawn_ = text.size();
}

void RunsProgress::clear() {
  for (; drawn_ > 0; --drawn_) std::cerr << "\x1b[1A\x1b[2K";
  std::cerr << std::flush;
}

}  // namespace lrnn::cli
