#include "mixers/mixer.h"

// A mixer is one file, which defines make_NAME, resolve_NAME and help_NAME, and one line in
// list.inc.
namespace lrnn::mixers {

#define MIXER(name, about)                       \
  MixerPtr make_##name(int64_t, const Section&); \
  YAML::Node resolve_##name(const Section&);     \
  std::string help_##name();
#include "mixers/list.inc"
#undef MIXER

const std::vector<Entry>& all() {
  static const std::vector<Entry> entries = {
#define MIXER(name, about) {#name, about, make_##name, resolve_##name, help_##name},
#include "mixers/list.inc"
#undef MIXER
  };
  return entries;
}

const Entry& find(const Section& at) {
  std::string names;
  for (const auto& entry : all()) names += cat(names.empty() ? "" : ", ", entry.name);
  std::string name;
  if (!at.has("name") || !parse(at.node()["name"], name))
    at.fail("name", "is needed", cat("one of: ", names));
  for (const auto& entry : all())
    if (name == entry.name) return entry;
  at.fail("name", cat("must be one of ", names, "; got '", name, "'"));
}

MixerPtr make(int64_t width, const Section& at) { return find(at).make(width, at); }

YAML::Node resolve(const Section& at) {
  const Entry& entry = find(at);
  YAML::Node out(YAML::NodeType::Map);
  out["name"] = entry.name;
  for (const auto& item : entry.resolve(at)) out[item.first] = item.second;
  return out;
}

}  // namespace lrnn::mixers
