#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace lrnn::cli {

// Adds --device to a command; the text is what the user asked for.
std::shared_ptr<std::string> add_device(CLI::App& app);
// Makes the device ready, or explains why it cannot be used.
void require_device(const std::string& device);
// The same, for a command that runs a model itself: while the result lives, its work on a GPU goes
// to a stream of its own, because nothing can be recorded on the default one.
std::shared_ptr<void> use_device(const std::string& device);
// Why CUDA cannot be used here; empty when it can.
std::string why_no_cuda();

}  // namespace lrnn::cli
