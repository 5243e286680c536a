#pragma once
#include "cli/eval_measure.h"
#include "cli/output.h"
#include "figures/table.h"

// What was measured by length, for people and for programs.
namespace lrnn::cli {

constexpr size_t kRowsForPeople = 24;

figures::Table lengths_table(const Measured& measured);  // an even choice of the rows
figures::Table lengths_csv(const Measured& measured);    // all of them
Json lengths_json(const Measured& measured);

// One row per length (at most `rows`, an even choice) and one column per curve: scaled accuracy, or
// of prefixes the share that is right. A curve without such a length has "–" there.
figures::Table side_by_side(const std::vector<EvalCurve>& curves, size_t rows, int digits);

}  // namespace lrnn::cli
