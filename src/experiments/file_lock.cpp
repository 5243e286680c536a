#include "experiments/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lrnn::experiments {

std::optional<FileLock> FileLock::take(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  check(file >= 0, "cannot write ", path, ": ", std::strerror(errno));
  FileLock out(file);
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return out;
  check(errno == EWOULDBLOCK, "cannot lock ", path, ": ", std::strerror(errno));
  return std::nullopt;
}

bool FileLock::held(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  const FileLock mine(file);
  return ::flock(file, LOCK_EX | LOCK_NB) != 0;
}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace lrnn::experiments
