#pragma once
#include "tasks/task.h"

namespace lrnn::cli {

// The elements of the group that a task is about: number, name, and where points go.
void print_key(const tasks::Task& task, bool json);

}  // namespace lrnn::cli
