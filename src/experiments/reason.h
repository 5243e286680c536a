#pragma once
#include <exception>
#include <string>

namespace lrnn::experiments {

// What a user is told of an error: one sentence, and what to do next (or nothing).
struct Reason {
  std::string text, hint;
};
Reason reason_of(const std::exception& error);

}  // namespace lrnn::experiments
