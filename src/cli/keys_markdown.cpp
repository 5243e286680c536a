#include "cli/keys.h"
#include "figures/table.h"

// docs/reference.md: written by the program, so that it says what the program does.
namespace lrnn::cli {
namespace {

constexpr const char* kIntroduction = R"(# Reference: every key of a config

Written by the program: `lrnn show --keys --markdown > docs/reference.md`. A test compares the two.
`lrnn show CONFIG --keys` lists the keys of one config with their values, `lrnn mixers` and
`lrnn tasks` what there is to choose from; all of them answer scripts with `--json`.

A config is a YAML file of these keys. `train.steps` is the key `steps` of the mapping `train`:

```yaml
train: {steps: 20000, lr: 1e-3}
```

On the command line `key=value` pairs behind the config replace what the file says:

```
lrnn train configs/tiny.yaml train.steps=1e3 model.mixer='{name: mamba, conv: 1}' task.train.length=[3,20]
```

* A **whole number** may be written 20000, 2e4 or 20000.0.
* A **range** is [low, high] with both ends in it, or one number for both.
* A **text** on the command line is what stands behind the `=`, to the letter: `task.regex='!(ab)*'` is
  the expression `!(ab)*`. The quotes are the shell's; more quotes inside them are part of the text.
* In a file, and inside `{…}` and `[…]` on the command line, a text is YAML's: put quotes around it where
  it begins with one of ``! & * [ { % @ ` `` or holds `: ` or ` #`.
* A **section** is a mapping with keys of its own, which are listed further down.
* Anything else on the command line is YAML.

A key that is not listed, a value of another type and a value outside the limits are errors that name the
line.

)";

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

std::string default_text(const Key& key) {
  if (key.type == "section") return "";
  return code(YAML::Dump(key.standard));
}

std::string takes(const Key& key) {
  if (key.limits.words().empty())
    return key.type + (key.limits.text().empty() ? "" : ": " + key.limits.text());
  std::string out;
  for (const auto& word : key.limits.words()) out += (out.empty() ? "" : ", ") + code(word);
  return out;
}

std::string table(const std::vector<Key>& keys) {
  figures::Table out({"key", "default", "takes", "what it is"});
  for (const auto& key : keys) out.row({code(key.name), default_text(key), takes(key), key.help});
  return out.markdown() + "\n";
}

// One table for each of the mappings that a config is made of, and one for what stands alone.
std::string run_tables(const std::vector<Key>& keys) {
  std::string out;
  std::vector<std::pair<std::string, std::vector<Key>>> sections;
  for (const auto& key : keys) {
    const size_t dot = key.name.find('.');
    const std::string section = dot == std::string::npos ? "" : key.name.substr(0, dot);
    if (sections.empty() || sections.back().first != section) sections.push_back({section, {}});
    sections.back().second.push_back(key);
  }
  for (const auto& [section, own] : sections)
    out += "## " + (section.empty() ? "A run" : code(section)) + "\n\n" + table(own);
  return out;
}

}  // namespace

std::string keys_markdown(const std::vector<KeyGroup>& groups) {
  std::string out = kIntroduction, kind;
  for (const auto& group : groups) {
    if (group.kind == "run") {
      out += run_tables(group.keys);
      continue;
    }
    if (group.kind != kind)
      out += group.kind == "mixer"
                 ? "## Mixers\n\nThe keys below `model.mixer`, and likewise below "
                   "`model.hybrid.mixer`, by its `name`.\n\n"
                 : "## Tasks\n\nThe keys below `task`, by its `name`.\n\n";
    kind = group.kind;
    out += "### " + group.name + "\n\n" + group.about + ".\n\n";
    out += group.keys.empty() ? "It has no keys of its own.\n\n" : table(group.keys);
  }
  out.pop_back();  // one line end at the end
  return out;
}

}  // namespace lrnn::cli
