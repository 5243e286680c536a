#include <iostream>

#include "cli/command.h"
#include "cli/keys.h"
#include "cli/output.h"
#include "cli/tasks_export.h"
#include "tasks/task.h"

namespace lrnn::cli {
namespace {

struct TasksArguments {
  std::string name, split = "train";
  std::vector<std::string> overrides;
  uint64_t seed = 0;
  int64_t count = 5;
  bool json = false, json_list = false;
};

int list(bool json) {
  Json all = Json::array();
  for (const auto& task : lrnn::tasks::all()) {
    all.push_back({{"name", task.name},
                   {"about", task.about},
                   {"help", help(task.keys())},
                   {"keys", keys_json(task.keys())}});
    if (!json) std::cout << task.name << ": " << task.about << "\n" << help(task.keys()) << "\n";
  }
  if (json) print_json({{"tasks", all}});
  return kDone;
}

int samples(const TasksArguments& a) {
  Section section = Section::from_text("{}", "tasks show");
  section.set("name=" + a.name);
  for (const auto& assignment : a.overrides) section.set(assignment);
  const auto task = lrnn::tasks::make(section);
  check(a.count >= 0, "--count must not be negative, got ", a.count);
  const auto split = a.split == "train" ? lrnn::tasks::Split::kTrain : lrnn::tasks::Split::kEval;
  for (int64_t i = 0; i < a.count && std::cout; ++i) {
    const auto example = task->sample(a.seed, split, uint64_t(i));
    if (a.json)
      print_json(
          {{"input", example.input}, {"target", example.target}, {"length", example.length}});
    else
      std::cout << task->text(example) << "\n";
  }
  return kDone;
}

}  // namespace

Action tasks(CLI::App& app) {
  auto a = std::make_shared<TasksArguments>();
  app.add_flag("--json", a->json_list, "one JSON object");
  auto* show = app.add_subcommand("show", "print samples: the input, then the answers");
  app.footer("Example:\n  lrnn tasks show parity --seed 1 --split eval --count 3");
  show->add_option("NAME", a->name, "a task of `lrnn tasks`")->required();
  show->add_option("KEYS", a->overrides, "key=value pairs of the task, such as eval.length=8");
  show->add_option("--seed", a->seed, "of the samples (default: 0)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  show->add_option("--split", a->split, "train or eval (default: train)")
      ->check(CLI::IsMember({"train", "eval"}))
      ->type_name("NAME");
  show->add_option("--count", a->count, "how many (default: 5)")->type_name("N");
  show->add_flag("--json", a->json,
                 "one JSON object per line: input, target (-1: no loss), length");
  show->footer("Example:\n  lrnn tasks show parity train.length=[3,10] --seed 1 --count 3");
  const Action exporting = add_tasks_export(app);
  return [a, show, exporting] {
    if (const int code = exporting(); code >= 0) return code;
    return show->parsed() ? samples(*a) : list(a->json_list);
  };
}

}  // namespace lrnn::cli
