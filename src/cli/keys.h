#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "cli/output.h"

// `--keys`: every key that a config may have, from the lists that reading uses.
namespace lrnn::cli {

// The keys of one part: of a run, of a mixer, of a task.
struct KeyGroup {
  std::string kind;         // "run", "mixer", "task"
  std::string name, about;  // "delta_net" and its line in `lrnn mixers`
  std::vector<Key> keys;    // with their full names: "model.mixer.heads"
};
std::vector<KeyGroup> all_keys();

struct KeysArguments {
  std::string config;  // empty: the keys of all mixers and all tasks, with their defaults
  std::vector<std::string> overrides;
  bool json = false, markdown = false;
};
std::shared_ptr<bool> add_keys(CLI::App& app);
int show_keys(const KeysArguments& arguments);

Json key_json(const Key& key);
Json keys_json(const std::vector<Key>& keys);
std::string keys_markdown(const std::vector<KeyGroup>& groups);  // docs/reference.md

}  // namespace lrnn::cli
