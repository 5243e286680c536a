#include "base/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lrnn {
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

}  // namespace lrnn
