#pragma once
#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace lrnn::cli {

// `lrnn tasks export`: adds it to `tasks` and says what to do when it was asked for.
Action add_tasks_export(CLI::App& command);

}  // namespace lrnn::cli
