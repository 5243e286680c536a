#include "experiments/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/atomic_file.h"
#include "experiments/identity.h"
#include "experiments/metrics.h"

namespace lrnn::experiments {
namespace {

using OutcomeJson = nlohmann::ordered_json;
constexpr int64_t kPublishedSequences = 8192;

double prefix_at(const training::Evaluation& e, int64_t at) {
  if (at <= 0 || at >= int64_t(e.prefix.size())) return e.accuracy();
  return e.prefix[size_t(at)];
}

// The score of an evaluation on the way. Lines of older runs know whole sequences only.
double score_in(const OutcomeJson& line, int64_t at) {
  const auto key = std::to_string(at);
  if (at > 0 && line.contains("prefix") && line["prefix"].contains(key))
    return number_in(line["prefix"], key);
  return number_in(line, line.contains("scaled") ? "scaled" : "loss");  // a text has a loss
}

void read_training(const std::string& file, int64_t at, Outcome& out) {
  for (const auto& line : read_json_lines(file)) {
    if (line.value("kind", "") != "eval") continue;
    const auto step = line.value("step", int64_t(0));
    const double score = score_in(line, at);
    out.training.emplace_back(double(step), score);
    if (!line.contains("validation")) continue;
    const double validation = score_in(line["validation"], at);
    out.validation.emplace_back(double(step), validation);
    if (!out.chosen || validation > out.chosen->validation)
      out.chosen = {.step = step, .validation = validation, .score = score};
  }
}

Curve read_lengths(const std::string& file) {
  Curve out;
  if (!std::filesystem::exists(file)) return out;
  const auto json = OutcomeJson::parse(read_file(file), nullptr, false);
  if (!json.is_object() || !json.contains("lengths")) return out;
  for (const auto& bin : json.at("lengths"))
    out.emplace_back((bin.value("low", 0.0) + bin.value("high", 0.0)) / 2,
                     bin.value("scaled", Summary::kNothing));
  return out;
}

std::vector<double> scores(const std::vector<Outcome>& runs) {
  std::vector<double> out;
  for (const auto& run : runs)
    if (run.done) out.push_back(run.score);
  return out;
}

// Of all runs that are done, or nothing: a table of some of them would be another table.
Summary summary_of_chosen(const std::vector<Outcome>& runs) {
  std::vector<double> out;
  for (const auto& run : runs) {
    if (run.done && !run.chosen) return {};
    if (run.done) out.push_back(run.chosen->score);
  }
  return summarise(out);
}

}  // namespace

Outcome read_outcome(const PlannedRun& run, int64_t at) {
  Outcome out;
  out.seed = run.seed, out.lr = run.lr, out.folder = run.folder;
  read_training(run.folder + "/metrics.jsonl", at, out);
  out.done = finished(run);
  if (!out.done) return out;
  const auto json = OutcomeJson::parse(read_file(run.folder + "/result.json"));
  const auto e = evaluation_from_json(json.at("evaluation"));
  out.seconds = json.value("seconds", 0.0);
  out.sequences = e.sequences.count;
  out.accuracy = e.accuracy(), out.scaled = e.scaled();
  out.loss = e.loss, out.text = e.of_text();
  out.step = json.value("step", int64_t(0));
  if (out.text) {
    out.score = e.loss;
  } else if (e.prefix.empty()) {
    out.score = e.scaled();
    out.lengths = read_lengths(lengths_file(run));
  } else {
    out.score = prefix_at(e, at);
    for (size_t l = 0; l < e.prefix.size(); ++l) out.lengths.emplace_back(double(l), e.prefix[l]);
  }
  return out;
}

const Outcome* CellOutcome::middle() const {
  std::vector<const Outcome*> done;
  for (const auto& run : runs)
    if (run.done) done.push_back(&run);
  if (done.empty()) return nullptr;
  std::sort(done.begin(), done.end(), [](auto a, auto b) { return a->score < b->score; });
  return done[(done.size() - 1) / 2];
}

int64_t CellOutcome::sequences() const {
  int64_t out = 0;
  for (const auto& run : runs)
    if (run.done && run.sequences > 0 && (out == 0 || run.sequences < out)) out = run.sequences;
  return out ? out : kPublishedSequences;
}

std::vector<CellOutcome> outcomes(const Suite& suite, const std::vector<PlannedRun>& runs) {
  std::vector<CellOutcome> out;
  for (size_t i = 0; i < suite.cells.size(); ++i) {
    CellOutcome cell;
    cell.cell = suite.cells[i];
    std::map<double, std::vector<Outcome>, std::greater<>> by_rate;
    for (const auto& run : runs) {
      if (run.cell != i) continue;
      by_rate[run.lr].push_back(read_outcome(run, cell.cell.at));
      cell.seconds += by_rate[run.lr].back().seconds;
      cell.key = identity(run.resolved.model).key;
      const auto task = tasks::make(run.resolved.task);
      cell.trained_to = task->length(tasks::Split::kTrain).hi;
      cell.prefix = task->score() == tasks::Score::kPrefix;
      cell.text = task->score() == tasks::Score::kText;
    }
    for (auto& [lr, of_rate] : by_rate) {
      auto values = scores(of_rate);
      auto ours = summarise(values);
      if (cell.text && !values.empty()) ours.best = *std::min_element(values.begin(), values.end());
      const bool better =
          cell.text ? ours.median < cell.ours.median : ours.median > cell.ours.median;
      if (!cell.runs.empty() && !better && !std::isnan(cell.ours.median)) continue;
      cell.lr = lr, cell.ours = ours, cell.chosen = summary_of_chosen(of_rate);
      cell.runs = std::move(of_rate);
    }
    out.push_back(std::move(cell));
  }
  return out;
}

double difference(const CellOutcome& c) {
  const auto& published = c.cell.published;
  return std::isnan(published.median) ? c.ours.best - published.best
                                      : c.ours.median - published.median;
}

double spread(const CellOutcome& c) {
  const auto& published = c.cell.published;
  const auto or_nothing = [](double x) { return std::isnan(x) ? 0 : x; };
  return or_nothing(published.mad) + or_nothing(c.ours.mad) + sampling_error(c.sequences());
}

double sampling_error(int64_t sequences) { return 1 / std::sqrt(double(sequences)); }

std::string remark(const CellOutcome& c) {
  const double d = difference(c);
  if (std::isnan(d) || std::abs(d) <= spread(c)) return "";
  return fmt::format("{} by {:.3f}", d < 0 ? "lower" : "higher", std::abs(d));
}

}  // namespace lrnn::experiments
