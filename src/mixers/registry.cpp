#include "base/text.h"
#include "mixers/mixer.h"

// A mixer is one file, which defines entry_NAME, and one line in list.inc.
namespace lrnn::mixers {

#define MIXER(name, about) Entry entry_##name(const char*, const char*);
#include "mixers/list.inc"
#undef MIXER

const std::vector<Entry>& all() {
#define MIXER(name, about) entry_##name(#name, about),
  static const std::vector<Entry> entries = {
#include "mixers/list.inc"
  };
#undef MIXER
  return entries;
}

const Entry& find(const Section& at) {
  std::string list, name;
  std::vector<std::string> names;
  for (const auto& entry : all()) {
    list += cat(list.empty() ? "" : ", ", entry.name);
    names.emplace_back(entry.name);
  }
  if (!at.has("name") || !at.read("name", name))
    at.fail("name", "is needed", cat("one of: ", list));
  for (const auto& entry : all())
    if (name == entry.name) return entry;
  at.fail("name", cat("must be one of ", list, "; got '", name, "'"), did_you_mean(name, names));
}

MixerPtr make(int64_t width, const Section& at) { return find(at).make(width, at); }

YAML::Node resolve(const Section& at) { return find(at).resolve(at); }

}  // namespace lrnn::mixers
