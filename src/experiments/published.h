#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "experiments/statistics.h"

// The published numbers, read from configs/published.json, and the config behind each.
namespace lrnn::experiments {

// One number of a published table, or one line of a published figure.
struct Cell {
  std::string task, model;
  std::string config;  // file under configs/ without .yaml
  int64_t at = 0;      // tasks with many answers: the prefix that is scored; 0: all of it
  Summary published;   // NaN: not published
  std::string says;    // published in words, where there is no number
  // Scaled accuracy by number of tokens, or prefix accuracy by length: for comparing shapes.
  std::vector<std::pair<double, double>> curve;
};

struct Suite {
  std::string name, about, source, score;
  std::vector<Cell> cells;
};

std::vector<Suite> read_suites(const std::string& configs);
const Suite& find_suite(const std::vector<Suite>& suites, const std::string& name);

// "parity,mamba": words found in the names of tasks choose tasks, all others choose models (by
// their name or their config's). Several words of one kind are alternatives. A word that chooses
// nothing is an Error.
Suite only(Suite suite, const std::string& words);

}  // namespace lrnn::experiments
