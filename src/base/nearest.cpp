#include "base/nearest.h"

#include <algorithm>
#include <cctype>
#include <numeric>

namespace lrnn {
namespace {

// How many single-letter edits turn a into b.
size_t edits(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row.back();
}

// What people remember of a name: DeltaNet, delta-net and delta_net are the same to them.
std::string spoken(const std::string& word) {
  std::string out;
  for (const char c : word)
    if (c != '-' && c != '_' && c != ' ')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  const std::string heard = spoken(word);
  // Those that sound alike are ordered by how they are written.
  std::pair<size_t, size_t> best{heard.size() <= 3 ? 2 : 3, 0};
  std::string out;
  for (const auto& candidate : known) {
    const std::pair distance{edits(heard, spoken(candidate)), edits(word, candidate)};
    if (distance < best) best = distance, out = candidate;
  }
  return out;
}

}  // namespace lrnn
