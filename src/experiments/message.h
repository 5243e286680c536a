#pragma once
#include <optional>
#include <string>

#include "experiments/run.h"

namespace lrnn::experiments {

// What a run says of itself while it is at work. A thread hands it over as it is, a process writes
// it as a line of JSON (docs/training.md).
struct Message {
  enum Kind { kProgress, kWarning, kError } kind = kProgress;
  Progress progress = {};
  std::string text = {}, hint = {};  // of a warning or an error
};

// Short enough for a pipe to pass it on in one piece.
std::string to_line(const Message& message);
// Nothing when the line is none of ours.
std::optional<Message> from_line(const std::string& line);

}  // namespace lrnn::experiments
