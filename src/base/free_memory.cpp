#include "base/free_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>

namespace lrnn {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// The number behind a word such as "MemAvailable:" in a file of words and numbers.
int64_t number_behind(const std::string& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string word; in >> word;)
    if (int64_t value = 0; word == name && in >> value) return value;
  return kUnknown;
}

// A file that holds one number; "max" and the like are none.
int64_t number_in(const std::string& file) {
  std::ifstream in(file);
  int64_t value = 0;
  return in >> value ? value : kUnknown;
}

// The names of the same three things in the two versions of control groups.
struct Group {
  const char *folder, *limit, *use, *cache;
};
constexpr Group kFirst = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                          "total_inactive_file"};
constexpr Group kSecond = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

// What a group and those around it leave. Files that were read and can be dropped again count as
// use, but need not.
int64_t left_in(const std::string& root, const Group& names, std::string path) {
  int64_t out = kUnknown;
  for (;;) {
    const std::string at = root + names.folder + path + "/";
    const int64_t limit = number_in(at + names.limit), use = number_in(at + names.use);
    const int64_t cache = number_behind(at + "memory.stat", names.cache);
    if (limit != kUnknown && use != kUnknown)
      out = std::min(out, std::max<int64_t>(0, limit - use + (cache == kUnknown ? 0 : cache)));
    if (path.empty() || path == "/") return out;
    path.resize(path.rfind('/'));
  }
}

}  // namespace

int64_t free_memory(const std::string& root) {
  int64_t out = number_behind(root + "/proc/meminfo", "MemAvailable:");
  if (out != kUnknown) out *= 1024;
  std::ifstream groups(root + "/proc/self/cgroup");  // lines such as 4:memory:/job and 0::/job
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line[second + 1] != '/') continue;
    const std::string kind = line.substr(first + 1, second - first - 1);
    if (kind.empty() || kind == "memory")
      out = std::min(out, left_in(root, kind.empty() ? kSecond : kFirst, line.substr(second + 1)));
  }
  return out;
}

}  // namespace lrnn
