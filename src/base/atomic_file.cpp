#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace lrnn {
namespace {

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // Some file systems report a failed write only here.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  const bool limit = error == EFBIG;
  throw Error(cat(what, " ", path, ": ", full ? "the disk is full" : std::strerror(error)),
              full    ? "free some space and start again; the previous contents are untouched"
              : limit ? "the file is larger than the file system or a limit (ulimit -f) allows"
                      : "");
}

// Returns the errno of the first failure, or 0.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    // Linux writes at most 2 GiB at once.
    const ssize_t n = ::write(fd, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

int write_temporary(const std::string& path, const std::vector<std::string_view>& pieces) {
  File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.is_open()) return errno;
  for (const auto piece : pieces)
    if (const int error = write_all(file.fd(), piece)) return error;
  if (::fsync(file.fd()) != 0 || !file.close()) return errno;
  return 0;
}

}  // namespace

void write_atomically(const std::string& path, const std::vector<std::string_view>& pieces) {
  const std::string temporary = path + ".partial";
  if (const int error = write_temporary(temporary, pieces)) {
    ::unlink(temporary.c_str());
    fail("cannot write", path, error);
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail("cannot replace", path, error);
  }
  // Without this the rename itself may be lost in a power cut.
  File folder(folder_of(path), O_RDONLY | O_DIRECTORY);
  if (!folder.is_open() || ::fsync(folder.fd()) != 0)
    fail("cannot sync the folder of", path, errno);
}

void write_atomically(const std::string& path, std::string_view bytes) {
  write_atomically(path, std::vector<std::string_view>{bytes});
}

void read_in_pieces(const std::string& path, const std::function<void(std::string_view)>& take) {
  File file(path, O_RDONLY);
  if (!file.is_open()) fail("cannot read", path, errno);
  struct stat info;
  if (::fstat(file.fd(), &info) != 0) fail("cannot read", path, errno);
  if (!S_ISREG(info.st_mode)) throw Error(cat("cannot read ", path, ": it is not a file"));
  std::string buffer(std::clamp<size_t>(size_t(info.st_size), 1, size_t{1} << 20), '\0');
  for (;;) {
    const ssize_t n = ::read(file.fd(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot read", path, errno);
    if (n == 0) return;
    take({buffer.data(), static_cast<size_t>(n)});
  }
}

std::string read_file(const std::string& path) {
  std::string out;
  read_in_pieces(path, [&](std::string_view piece) { out.append(piece); });
  return out;
}

}  // namespace lrnn
