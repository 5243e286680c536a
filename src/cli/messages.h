#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "experiments/message.h"

// What this program tells another one that watches it, as lines of JSON (docs/training.md).
namespace lrnn::cli {

// --progress FILE
CLI::Option* add_progress(CLI::App& app);
void open_messages(const std::string& file);

// Nothing happens when nobody watches.
void tell(const experiments::Message& message);
// The same, and on stderr.
void warn(const std::string& sentence);

}  // namespace lrnn::cli
