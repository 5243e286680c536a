#include "tasks/task.h"

#include <numeric>

#include "base/text.h"

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
  std::string name, hint = "the tasks are:";
  std::vector<std::string> names;
  for (const auto& entry : all()) {
    hint += cat(" ", entry.name);
    names.emplace_back(entry.name);
  }
  if (!at.has("name")) at.fail("name", "is missing", hint);
  if (!at.read("name", name))
    at.fail("name", cat("must be a word, got '", at.text("name"), "'"), hint);
  for (const auto& entry : all())
    if (entry.name == name) return entry;
  if (const auto meant = nearest(name, names); !meant.empty())
    hint = cat("did you mean '", meant, "'? ", hint);
  at.fail("name", cat("names no task: '", name, "'"), hint);
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
