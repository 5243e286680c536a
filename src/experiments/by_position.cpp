#include "experiments/by_position.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace lrnn::experiments {

void ByPosition::add(const tasks::Example& example, const training::TokenLosses& losses) {
  if (sums_.size() < example.target.size()) sums_.resize(example.target.size());
  std::vector<size_t> at;  // the positions with a target
  std::vector<double> before = {0};
  for (size_t i = 0; i < example.target.size(); ++i) {
    if (example.target[i] < 0) continue;
    at.push_back(i);
    before.push_back(before.back() + double(losses.loss[i]));
  }
  const auto count = int64_t(at.size());
  for (int64_t k = 0; k < count; ++k) {
    const int64_t half = std::min(half_, k), end = std::min(count, k + half + 1);
    const double smoothed =
        (before[size_t(end)] - before[size_t(k - half)]) / double(end - k + half);
    auto& sum = sums_[at[size_t(k)]];
    sum.loss += double(losses.loss[at[size_t(k)]]);
    sum.smoothed += smoothed, sum.squares += smoothed * smoothed;
    sum.running += before[size_t(k + 1)] / double(k + 1);
    sum.right += losses.right[at[size_t(k)]], ++sum.count;
  }
}

std::vector<PositionLoss> ByPosition::rows() const {
  std::vector<PositionLoss> out;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const auto& s = sums_[i];
    if (s.count == 0) continue;
    const double n = double(s.count);
    PositionLoss row;
    row.position = int64_t(i) + 1, row.sequences = s.count;
    row.loss = s.loss / n, row.smoothed = s.smoothed / n;
    if (s.count > 1)
      row.error = std::sqrt(std::max(0.0, s.squares / n - row.smoothed * row.smoothed) / (n - 1));
    row.running = std::exp(s.running / n);
    row.accuracy = double(s.right) / n;
    out.push_back(row);
  }
  return out;
}

namespace {

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) out.push_back(cell);
  return out;
}

}  // namespace

std::vector<DomainCurve> read_positions(const std::string& run) {
  const std::string file = run + "/eval/position.csv";
  if (!std::filesystem::exists(file))
    throw Error(cat(run, " has no losses by position yet"),
                "lrnn eval RUN --data DIR --lengths 32768 measures them");
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  check(line == kPositionColumns, file, " begins with '", line, "', not with '", kPositionColumns,
        "'");
  std::vector<DomainCurve> out;
  for (int64_t number = 2; std::getline(in, line); ++number) {
    const auto cells = cells_of(line);
    try {
      check(cells.size() == 7, cells.size(), " columns");
      if (out.empty() || out.back().name != cells[0]) out.push_back({cells[0], {}});
      PositionLoss row;
      row.position = std::stoll(cells[1]), row.loss = std::stod(cells[2]);
      row.smoothed = std::stod(cells[3]), row.running = std::stod(cells[4]);
      row.accuracy = std::stod(cells[5]), row.sequences = std::stoll(cells[6]);
      out.back().rows.push_back(row);
    } catch (const std::exception&) {
      throw Error(cat(file, ", line ", number, " is damaged: ", line), "evaluate the run again");
    }
  }
  return out;
}

}  // namespace lrnn::experiments
