#include "cli/reproduce_progress.h"

#include <fmt/format.h>

#include <iostream>

#include "cli/output.h"
#include "cli/progress.h"

namespace lrnn::cli {
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

ReproduceProgress::ReproduceProgress(const experiments::Suite& suite,
                                     const std::vector<experiments::PlannedRun>& runs, int64_t jobs,
                                     bool quiet)
    : suite_(suite), runs_(runs), jobs_(jobs), quiet_(quiet), terminal_(on_terminal(2)) {}

std::vector<std::string> ReproduceProgress::lines(const std::vector<RunProgress>& all) const {
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

void ReproduceProgress::show(const std::vector<RunProgress>& all, bool now) {
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

void ReproduceProgress::clear() {
  for (; drawn_ > 0; --drawn_) std::cerr << "\x1b[1A\x1b[2K";
  std::cerr << std::flush;
}

}  // namespace lrnn::cli
