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

namespace {

YAML::Node named(const char* name, const YAML::Node& fields) {
  YAML::Node out(YAML::NodeType::Map);
  out["name"] = name;
  for (const auto& item : fields) out[item.first] = item.second;
  return out;
}

}  // namespace

const std::vector<Entry>& all() {
  static const std::vector<Entry> entries = {
#define MIXER(name, about)                                                                        \
  {#name, about, make_##name, [](const Section& at) { return named(#name, resolve_##name(at)); }, \
   help_##name},
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

YAML::Node resolve(const Section& at) { return find(at).resolve(at); }

}  // namespace lrnn::mixers
