#include "tasks/task.h"

#include <numeric>

namespace lrnn::tasks {

#define TASK(name, about) Entry entry_##name(const char*, const char*);
#include "tasks/list.inc"
#undef TASK

const std::vector<Entry>& all() {
#define TASK(name, about) entry_##name(#name, about),
  static const std::vector<Entry> entries = {
#include "tasks/list.inc"
  };
#undef TASK
  return entries;
}

const Entry& find(const Section& at) {
  std::string name, known;
  for (const auto& entry : all()) known += (known.empty() ? "" : " ") + std::string(entry.name);
  if (!at.has("name")) at.fail("name", "is missing", "the tasks are: " + known);
  if (!parse(at.node()["name"], name))
    at.fail("name", cat("must be a word, got '", at.text("name"), "'"), "the tasks are: " + known);
  for (const auto& entry : all())
    if (entry.name == name) return entry;
  at.fail("name", cat("names no task: '", name, "'"), "the tasks are: " + known);
}

TaskPtr make(const Section& at) { return find(at).make(at); }

std::vector<int64_t> Task::letters() const {
  std::vector<int64_t> out(static_cast<size_t>(vocabulary()));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

std::string Task::text(const Example& example) const {
  std::string input, answer;
  for (const int64_t token : example.input) input += word(token) + " ";
  for (const int64_t token : example.target)
    if (token >= 0) answer += " " + word(token);
  return input + "->" + answer;
}

}  // namespace lrnn::tasks
