#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/command.h"
#include "cli/keys.h"
#include "cli/options.h"
#include "cli/output.h"
#include "tasks/group_file.h"
#include "tasks/task.h"

namespace lrnn::cli {

namespace {

namespace fs = std::filesystem;

struct TasksExportArguments {
  std::string group, out = ".";
  int64_t length = 128, count = 100000;
  uint64_t seed = 0;
  bool json = false;
};

// Row by row into a file beside it, which takes its name when all of it is there.
void write_rows(const std::string& path, const lrnn::tasks::Task& task, uint64_t seed,
                int64_t count) {
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  const std::string partial = path + ".partial";
  std::ofstream out(partial);
  out << lrnn::tasks::group_file_header();
  for (int64_t i = 0; i < count && out; ++i) {
    const auto e = task.sample(seed, lrnn::tasks::Split::kTrain, uint64_t(i));
    // The files have no BOS.
    out << lrnn::tasks::group_file_row(seed, {e.input.begin() + 1, e.input.end()},
                                       {e.target.begin() + 1, e.target.end()});
  }
  out.close();
  if (out) fs::rename(partial, path, failed);
  if (!out || failed) {
    fs::remove(partial, failed);
    throw Error(cat("cannot write ", path), "is the disk full, or the folder read-only?");
  }
}

int export_group(const TasksExportArguments& a) {
  check(a.length >= 1, "--length must be at least 1, got ", a.length);
  check(a.count >= 1, "--count must be at least 1, got ", a.count);
  const lrnn::tasks::GroupWords words(a.group);
  const int64_t most =
      lrnn::tasks::largest_set(int64_t(words.letters.size()), words.draws(a.length));
  const int64_t count = std::min(a.count, most);
  auto section = Section::from_text("name: group", "tasks export");
  for (const auto& assignment :
       {cat("group=", a.group), cat("train.length=", a.length), cat("train.set=", count)})
    section.set(assignment);
  const auto task = lrnn::tasks::make(section);
  const std::string path = cat(a.out, "/", a.group, "=", a.length, ".csv");
  write_rows(path, *task, a.seed, count);
  if (a.json)
    print_json({{"file", path}, {"sequences", count}, {"length", a.length}});
  else
    std::cout << path << ": " << thousands(count) << " distinct sequences"
              << (count < a.count ? ", which is all there are" : "") << "\n";
  return kDone;
}

// `lrnn tasks export`: adds it to `tasks` and says what to do when it was asked for.
Action add_tasks_export(CLI::App& command) {
  auto a = std::make_shared<TasksExportArguments>();
  auto* app = command.add_subcommand("export", "write words of a group to a CSV file");
  app->add_option("GROUP", a->group, "S5, S5_only_swaps, Z60_2_tokens_s_token, …")->required();
  add_number(*app, "--length", a->length, "tokens in a sequence (default: 128)");
  add_number(*app, "--count", a->count, "distinct sequences (default: 100000)");
  add_number(*app, "--seed", a->seed, "of the sequences (default: 0)", Least::kZero);
  app->add_option("--out", a->out, "folder of GROUP=N.csv (default: here)")->type_name("DIR");
  app->add_flag("--json", a->json, "one JSON object");
  app->footer(
      "The format is that of the published experiments: seed,input,target with ids between "
      "spaces.\n"
      "Train on a file with task.train.file=data/S5=128.csv.\n\n"
      "Example:\n  lrnn tasks export S5 --length 128 --count 2000000 --out data");
  return [a, app]() -> int { return app->parsed() ? export_group(*a) : -1; };
}

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
  add_number(*show, "--seed", a->seed, "of the samples (default: 0)", Least::kZero);
  show->add_option("--split", a->split, "train or eval (default: train)")
      ->check(CLI::IsMember({"train", "eval"}))
      ->type_name("NAME");
  add_number(*show, "--count", a->count, "how many (default: 5)");
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
