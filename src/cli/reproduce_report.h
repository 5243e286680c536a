#pragma once
#include <string>
#include <vector>

#include "cli/output.h"
#include "experiments/outcome.h"
#include "figures/table.h"

// The table of a suite beside the published one, in every form it is asked for.
namespace lrnn::cli {

struct ReproduceReport {
  experiments::Suite suite;
  experiments::PlanOptions options;
  std::vector<experiments::CellOutcome> cells;
  std::vector<std::string> failures = {};  // "parity, Mamba [0,1], seed 42: why"
  std::vector<std::string> warnings = {};  // the same, of damaged checkpoints and the like
};

// What is not as published ("SHORTENED to 0.05 of the steps"), or nothing. Shown wherever results
// are.
std::string reproduce_warning(const experiments::PlanOptions& options);

std::string reproduce_columns();  // what its columns are, in half a sentence
figures::Table reproduce_table(const ReproduceReport& report);
std::string reproduce_markdown(const ReproduceReport& report);
Json reproduce_json(const ReproduceReport& report);
Json summary_json(const experiments::Summary& summary);  // what is missing is null
// Scaled accuracy by step of every seed of a cell, with the evaluations chosen and the published
// number; "" where nothing was evaluated.
std::string cell_curves(const experiments::CellOutcome& cell);
std::string reproduce_page(const ReproduceReport& report);  // self-contained HTML with figures

// Of language models: every published row, ours below it where there is one, and the data it wants.
bool of_language_models(const std::vector<experiments::PlannedRun>& runs);
figures::Table language_models_table(const experiments::Suite& suite,
                                     const std::vector<experiments::PlannedRun>& runs);
Json language_models_json(const experiments::Suite& suite,
                          const std::vector<experiments::PlannedRun>& runs);
// The folders that runs read and that are not there, each with how it is made.
std::string missing_data(const std::vector<experiments::PlannedRun>& runs);

// table.md, table.csv, table.json, report.html and curves/CONFIG.svg in the suite's folder; the
// result is the page.
std::string write_reproduce_report(const ReproduceReport& report);

}  // namespace lrnn::cli
