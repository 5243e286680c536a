#include "base/nearest.h"
#include "mixers/mixer.h"

// A mixer is one file, which defines make_NAME, resolve_NAME and keys_NAME, and one line in
// list.inc.
namespace lrnn::mixers {

#define MIXER(name, about)                       \
  MixerPtr make_##name(int64_t, const Section&); \
  YAML::Node resolve_##name(const Section&);     \
  std::vector<Key> keys_##name();
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
   keys_##name},
#include "mixers/list.inc"
#undef MIXER
  };
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
