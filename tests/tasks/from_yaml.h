#pragma once
#include "tasks/task.h"

namespace lrnn::tasks {

inline TaskPtr task(const std::string& yaml) { return make(Section::from_text(yaml, "x.yaml")); }

// The sentence and the hint that making the task of a config ends with.
inline std::string error_of(const Section& at) {
  try {
    make(at);
    return "no error";
  } catch (const Error& e) {
    return std::string(e.what()) + " | " + e.hint();
  }
}

}  // namespace lrnn::tasks
