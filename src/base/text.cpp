#include "base/text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "base/error.h"

namespace lrnn {

size_t bytes_of_character(unsigned char first) {
  return first < 0x80   ? 1
         : first < 0xC2 ? 0
         : first < 0xE0 ? 2
         : first < 0xF0 ? 3
         : first < 0xF5 ? 4
                        : 0;
}

size_t bytes_of_character(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t n = bytes_of_character(first);
  if (n > text.size()) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (n < 3) return n;
  const unsigned char second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  return overlong || beyond ? 0 : n;
}

std::vector<std::string> characters(const std::string& text, const std::string& what) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size(); at += out.back().size()) {
    const size_t n = bytes_of_character(std::string_view(text).substr(at));
    if (n == 0)
      throw Error(cat(what, " is not UTF-8: column ", out.size() + 1, " is no character"),
                  "write it in UTF-8, or use plain letters");
    out.push_back(text.substr(at, n));
  }
  return out;
}

uint32_t code_point(const std::string& character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  uint32_t out = first & (0xFFu >> (character.size() + 1));
  for (size_t i = 1; i < character.size(); ++i)
    out = (out << 6) | (static_cast<unsigned char>(character[i]) & 0x3Fu);
  return out;
}

std::string shown(const std::string& character) {
  const uint32_t c = code_point(character);
  return c < 32 || c == 127 ? cat("character ", c) : cat("'", character, "'");
}

namespace {

// Reads until the end, or until there are more than `most` bytes: pipes and devices have no size.
int read_some(int fd, int64_t most, std::string& out) {
  std::string block(size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t n = ::read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    out.append(block.data(), static_cast<size_t>(n));
    if (n == 0 || static_cast<int64_t>(out.size()) > most) return 0;
  }
}

// What no text holds: NUL and its kind, but not tabs, line ends, form feeds and escapes.
bool is_binary(const std::string& text) {
  for (const char c : text)
    if (const auto b = static_cast<unsigned char>(c);
        b < ' ' && !(b >= '\t' && b <= '\r') && b != 27)
      return true;
  return false;
}

std::string size_text(int64_t bytes) {
  return bytes >= 1 << 20 ? cat(bytes >> 20, " MB") : cat(bytes, " bytes");
}

}  // namespace

std::string read_text_file(const std::string& path, const TextFile& about) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    throw Error(cat(path, " is a folder, not a file"), about.hint);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
    throw Error(cat("there is no file ", path), about.hint);
  if (fd < 0) throw Error(cat("cannot read ", path, ": ", std::strerror(errno)), about.hint);
  std::string out;
  const int error = read_some(fd, about.most_bytes, out);
  ::close(fd);
  if (error) throw Error(cat("cannot read ", path, ": ", std::strerror(error)), about.hint);
  if (out.empty()) throw Error(cat(path, " is empty"), about.hint);
  if (is_binary(out)) throw Error(cat(path, " is not a text file"), about.hint);
  if (static_cast<int64_t>(out.size()) > about.most_bytes)
    throw Error(cat(path, " is larger than ", size_text(about.most_bytes)), about.hint);
  return out;
}

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

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known,
                         const std::string& otherwise) {
  const auto meant = nearest(word, known);
  return meant.empty() ? otherwise : cat("did you mean '", meant, "'?");
}

}  // namespace lrnn
