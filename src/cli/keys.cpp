#include "cli/keys.h"

#include <iostream>

#include "cli/command.h"
#include "cli/find.h"
#include "experiments/run.h"

namespace lrnn::cli {
namespace {

std::vector<Key> below(const std::string& prefix, std::vector<Key> keys) {
  for (auto& key : keys) key.name = prefix + key.name;
  return keys;
}

// The keys of a mixer or a task, and the one that says which it is.
template <class Entry>
std::vector<Key> named(const std::string& prefix, const Entry& entry, const char* where) {
  auto out = below(prefix, entry.keys());
  out.insert(out.begin(), {prefix + "name", "text", {}, {}, cat(entry.about, "; others: ", where)});
  return out;
}

YAML::Node value_of(const YAML::Node& config, const std::string& name) {
  const size_t dot = name.find('.');
  const YAML::Node here = config[name.substr(0, dot)];
  return dot == std::string::npos || !here.IsMap() ? here : value_of(here, name.substr(dot + 1));
}

std::string flow(const YAML::Node& node) {
  YAML::Emitter out;
  out.SetMapFormat(YAML::Flow);
  out << node;
  return out.c_str();
}

// The keys that this very config has: those of its own mixers and of its own task.
std::vector<Key> keys_of(const experiments::RunConfig& config) {
  std::vector<Key> out;
  const auto add = [&](std::vector<Key> keys) { out.insert(out.end(), keys.begin(), keys.end()); };
  for (const auto& key : keys<experiments::RunConfig>()) {
    if (key.name == "task")
      add(named("task.", lrnn::tasks::find(config.task), "`lrnn tasks`"));
    else if (key.name == "model.mixer")
      add(named("model.mixer.", lrnn::mixers::find(config.model.mixer), "`lrnn mixers`"));
    else if (key.name == "model.hybrid.mixer" && config.model.hybrid.any())
      add(named("model.hybrid.mixer.", lrnn::mixers::find(config.model.hybrid.mixer),
                "`lrnn mixers`"));
    else
      out.push_back(key);
  }
  return out;
}

int show_keys_of_config(const KeysArguments& a) {
  const auto config = experiments::read_config(find_config(a.config), a.overrides);
  const auto resolved = experiments::resolve(config);
  auto keys = keys_of(config);
  Json list = Json::array();
  for (auto& key : keys) {
    const YAML::Node value = value_of(resolved, key.name);
    list.push_back(key_json(key));
    list.back()["value"] = to_json(value);
    const std::string standard = key.standard.IsNull() ? "" : flow(key.standard);
    if (!standard.empty() && flow(value) != standard) key.help += cat("; default ", standard);
    key.standard = YAML::Node(value);
    key.standard.SetStyle(YAML::EmitterStyle::Flow);
  }
  if (a.json)
    print_json({{"config", a.config},
                {"task", lrnn::tasks::find(config.task).name},
                {"mixer", lrnn::mixers::find(config.model.mixer).name},
                {"keys", list}});
  else
    std::cout << help(keys);
  return kDone;
}

Json groups_json(const std::vector<KeyGroup>& groups) {
  Json out = {{"keys", Json::array()}, {"mixers", Json::array()}, {"tasks", Json::array()}};
  for (const auto& group : groups) {
    if (group.kind == "run")
      out["keys"] = keys_json(group.keys);
    else
      out[group.kind + "s"].push_back(
          {{"name", group.name}, {"about", group.about}, {"keys", keys_json(group.keys)}});
  }
  return out;
}

}  // namespace

std::vector<KeyGroup> all_keys() {
  std::vector<KeyGroup> out = {{"run", "", "", keys<experiments::RunConfig>()}};
  for (const auto& mixer : lrnn::mixers::all())
    out.push_back({"mixer", mixer.name, mixer.about, below("model.mixer.", mixer.keys())});
  for (const auto& task : lrnn::tasks::all())
    out.push_back({"task", task.name, task.about, below("task.", task.keys())});
  return out;
}

Json key_json(const Key& key) {
  Json out = {{"key", key.name}, {"type", key.type}, {"default", to_json(key.standard)}};
  const auto& limits = key.limits;
  if (!limits.text().empty()) out["takes"] = limits.text();
  if (!limits.words().empty()) out["choices"] = limits.words();
  for (const auto& r : limits.ranges()) out["choices"].push_back({r.lo, r.hi});
  const auto end = [&](const Limits::End& e, const char* included, const char* excluded) {
    if (std::isfinite(e.value)) out[e.included ? included : excluded] = e.value;
  };
  end(limits.low(), "least", "above");
  end(limits.high(), "most", "below");
  out["help"] = key.help;
  return out;
}

Json keys_json(const std::vector<Key>& keys) {
  Json out = Json::array();
  for (const auto& key : keys) out.push_back(key_json(key));
  return out;
}

std::shared_ptr<bool> add_keys(CLI::App& app) {
  auto asked = std::make_shared<bool>(false);
  app.add_flag("--keys", *asked, "list every key of a config, and do nothing else");
  return asked;
}

int show_keys(const KeysArguments& a) {
  if (a.markdown && !a.config.empty())
    throw Error("--markdown prints the reference of all keys, not those of a config",
                "leave out the config, or --markdown");
  if (!a.config.empty()) return show_keys_of_config(a);
  const auto groups = all_keys();
  if (a.markdown) {
    std::cout << keys_markdown(groups);
  } else if (a.json) {
    print_json(groups_json(groups));
  } else {
    std::cout << "In a config, or as key=value on the command line:\n";
    for (const auto& group : groups) {
      if (!group.name.empty())
        std::cout << "\n"
                  << (group.kind == "mixer" ? "model.mixer.name: " : "task.name: ") << group.name
                  << "    " << group.about << "\n";
      std::cout << help(group.keys);
    }
  }
  return kDone;
}

}  // namespace lrnn::cli
