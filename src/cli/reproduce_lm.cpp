#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/atomic_file.h"
#include "cli/reproduce_report.h"
#include "experiments/text_run.h"

// `lrnn reproduce` of language models: columns of benchmarks beside the published ones.
namespace lrnn::cli {
namespace {

using experiments::Cell;
using experiments::Outcome;
using experiments::PlannedRun;
using experiments::Suite;

// A column of the published tables: its name in published.json, its head, and which score of
// `lrnn eval --task` it is.
struct Column {
  const char *name, *head, *task, *score;
};
constexpr Column kColumns[] = {{"wikitext", "Wiki", "wikitext", "ppl"},
                               {"lambada_ppl", "LMB ppl", "lambada_openai", "ppl"},
                               {"lambada", "LMB", "lambada_openai", "acc"},
                               {"piqa", "PIQA", "piqa", "acc"},
                               {"hellaswag", "Hella", "hellaswag", "acc_norm"},
                               {"winogrande", "Wino", "winogrande", "acc"},
                               {"arc_easy", "ARC-e", "arc_easy", "acc"},
                               {"arc_challenge", "ARC-c", "arc_challenge", "acc_norm"},
                               {"average", "avg", "", ""},
                               {"swde", "SWDE", "swde", "acc"},
                               {"squad_completion", "SQuAD", "squad_completion", "acc"},
                               {"fda", "FDA", "fda", "acc"}};
// The average is that of these.
constexpr const char* kAveraged[] = {"lambada",    "piqa",     "hellaswag",
                                     "winogrande", "arc_easy", "arc_challenge"};

using Numbers = std::map<std::string, double>;

// What `lrnn eval --task` left in a run, in the columns' names.
Numbers scores_in(const std::string& folder) {
  Numbers out;
  const std::string file = folder + "/eval/tasks.json";
  if (!std::filesystem::exists(file)) return out;
  const auto json = Json::parse(read_file(file), nullptr, false);
  if (!json.is_object() || !json.contains("tasks")) return out;
  for (const auto& one : json["tasks"])
    for (const auto& column : kColumns)
      if (one.value("name", "") == column.task && one.contains(column.score) &&
          one[column.score].is_number())
        out[column.name] = one[column.score].get<double>() * (column.score[0] == 'a' ? 100 : 1);
  double sum = 0;
  for (const char* name : kAveraged) sum += out.contains(name) ? out[name] : std::nan("");
  if (!std::isnan(sum)) out["average"] = sum / double(std::size(kAveraged));
  return out;
}

std::string two_digits(const Numbers& numbers, const char* name) {
  const auto at = numbers.find(name);
  return at == numbers.end() ? "–" : fmt::format("{:.2f}", at->second);
}

std::string joined(const std::vector<std::string>& folders) {
  std::string out;
  for (const auto& folder : folders) out += (out.empty() ? "" : " ") + folder;
  return out;
}

// A row's seeds.
struct Row {
  std::vector<std::string> folders;  // of data
  int64_t runs = 0, steps = 0;
  std::vector<Outcome> done;
};
Row row_of(const std::vector<PlannedRun>& runs, size_t cell) {
  Row out;
  for (const auto& run : runs) {
    if (run.cell != cell) continue;
    ++out.runs, out.steps = run.resolved.train.steps;
    out.folders = experiments::data_folders(run.resolved);
    if (auto outcome = experiments::read_outcome(run); outcome.done)
      out.done.push_back(std::move(outcome));
  }
  return out;
}

double median_loss(const Row& row) {
  std::vector<double> losses;
  for (const auto& outcome : row.done) losses.push_back(outcome.loss);
  return experiments::median_of(losses);
}

// Of a folder that is not there: what it is, and what makes it.
std::string how_to_make(const std::string& folder) {
  const auto name = std::filesystem::path(folder).filename().string();
  if (name == "fineweb")
    return "FineWeb's texts as JSONL, which nobody packages: lrnn prepare FILES --tokenizer "
           "tokenizer.model -o " +
           folder + ", with the tokenizer of the papers, Mistral-7B-v0.1 (PyPI mistral-common)";
  for (const char* made : {"prose", "docs", "python", "code", "math"})
    if (name == made)
      return fmt::format(
          "scripts/corpus.py {0} -o corpus, then lrnn prepare corpus/{0}.jsonl --eval "
          "corpus/{0}.eval.jsonl --tokenizer TOK --domain {0} -o {1}",
          made, folder);
  return "lrnn prepare TEXTS --tokenizer TOK -o " + folder;
}

}  // namespace

bool of_language_models(const std::vector<PlannedRun>& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const PlannedRun& run) {
    return run.resolved.task.text("name") == "text";
  });
}

figures::Table language_models_table(const Suite& suite, const std::vector<PlannedRun>& runs) {
  std::vector<std::string> head = {"model"};
  for (const auto& column : kColumns) head.emplace_back(column.head);
  for (const char* more : {"loss", "done", "steps", "data", "config"}) head.emplace_back(more);
  figures::Table out(head);
  for (size_t i = 0; i < suite.cells.size(); ++i) {
    const auto& cell = suite.cells[i];
    const Row row = row_of(runs, i);
    const Numbers published(cell.numbers.begin(), cell.numbers.end());
    std::vector<std::string> theirs = {cell.model}, ours = {"  ours"};
    const Numbers scores = row.done.empty() ? Numbers() : scores_in(row.done[0].folder);
    for (const auto& column : kColumns)
      theirs.push_back(two_digits(published, column.name)),
          ours.push_back(two_digits(scores, column.name));
    const auto done = fmt::format("{} of {}", row.done.size(), row.runs);
    for (const auto& more :
         {std::string("–"), done, thousands(row.steps), joined(row.folders), cell.config})
      theirs.push_back(more);
    ours.push_back(decimals(median_loss(row), 3));
    ours.resize(head.size());
    out.row(theirs);
    if (!row.done.empty()) out.row(ours);
  }
  return out;
}

Json language_models_json(const Suite& suite, const std::vector<PlannedRun>& runs) {
  Json out = Json::array();
  for (size_t i = 0; i < suite.cells.size(); ++i) {
    const auto& cell = suite.cells[i];
    const Row row = row_of(runs, i);
    Json published = Json::object(), data = Json::array(), ours = nullptr;
    for (const auto& [name, value] : cell.numbers) published[name] = value;
    for (const auto& folder : row.folders)
      data.push_back({{"path", folder}, {"there", std::filesystem::is_directory(folder)}});
    if (!row.done.empty()) {
      ours = Json::object();
      for (const auto& [name, value] : scores_in(row.done[0].folder)) ours[name] = value;
      ours["loss"] = median_loss(row);
    }
    out.push_back({{"task", cell.task},
                   {"model", cell.model},
                   {"config", cell.config},
                   {"published", published},
                   {"ours", ours},
                   {"data", data},
                   {"runs", row.runs},
                   {"done", row.done.size()},
                   {"steps", row.steps}});
  }
  return out;
}

std::string missing_data(const std::vector<PlannedRun>& runs) {
  std::vector<std::string> folders;
  std::map<std::string, std::set<size_t>> rows;
  for (const auto& run : runs) {
    for (const auto& folder : experiments::data_folders(run.resolved)) {
      if (std::filesystem::is_directory(folder)) continue;
      if (!rows.contains(folder)) folders.push_back(folder);
      rows[folder].insert(run.cell);
    }
  }
  std::string out;
  for (const auto& folder : folders) {
    const size_t count = rows[folder].size();
    out += fmt::format("{} is not there ({} row{}): {}\n", folder, count, count == 1 ? "" : "s",
                       how_to_make(folder));
  }
  return out;
}

}  // namespace lrnn::cli
