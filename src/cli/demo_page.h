#pragma once
#include <string>
#include <vector>

#include "experiments/demo.h"
#include "figures/table.h"

namespace lrnn::cli {

// What theory predicts, on request with its reason, beside what was measured.
figures::Table demo_table(const std::vector<experiments::DemoRow>& rows, bool why);
// The same with pictures, as one self-contained HTML page.
std::string demo_page(const std::vector<experiments::DemoRow>& rows);

}  // namespace lrnn::cli
