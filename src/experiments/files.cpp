#include "experiments/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lrnn::experiments {

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail("cannot open");
}

AppendFile::AppendFile(std::string path, int64_t keep) : AppendFile(std::move(path)) {
  size_ = keep;
  struct stat status {};
  if (::fstat(file_, &status) != 0) fail("cannot read the size of");
  const bool regular = S_ISREG(status.st_mode);
  if (regular && status.st_size < keep)
    throw Error(cat(path_, " has ", status.st_size,
                    " bytes, but the checkpoint was made when it had ", keep),
                "lines were lost outside of lrnn; restore the file or start in another folder");
  if (regular && status.st_size > keep && ::ftruncate(file_, keep) != 0) fail("cannot shorten");
}

AppendFile::~AppendFile() {
  if (file_ >= 0) ::close(file_);
}

void AppendFile::bytes(std::string_view bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::write(file_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot write");
    done += size_t(n);
  }
  size_ += int64_t(bytes.size());
}

void AppendFile::sync() {
  if (::fsync(file_) != 0) fail("cannot write");
}

void AppendFile::fail(const char* what) const {
  const int error = errno;
  throw Error(
      cat(what, " ", path_, ": ", std::strerror(error)),
      error == ENOSPC || error == EDQUOT ? "free some space, then continue with --resume" : "");
}

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
