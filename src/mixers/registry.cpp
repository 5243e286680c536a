#include "base/nearest.h"
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
  const auto meant = nearest(name, names);
  at.fail("name", cat("must be one of ", list, "; got '", name, "'"),
          meant.empty() ? "" : cat("did you mean '", meant, "'?"));
}

MixerPtr make(int64_t width, const Section& at) { return find(at).make(width, at); }

YAML::Node resolve(const Section& at) { return find(at).resolve(at); }

}  // namespace lrnn::mixers
