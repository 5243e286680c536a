#pragma once
#include <optional>
#include <string>
#include <utility>

namespace lrnn::experiments {

// A file that one process at a time holds. The kernel lets go of it when the process ends, however
// it ends.
class FileLock {
 public:
  // Makes the file when there is none; nothing when another process holds it.
  static std::optional<FileLock> take(const std::string& path);
  // Whether somebody holds it at this moment; makes no file.
  static bool held(const std::string& path);

  FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~FileLock();

 private:
  explicit FileLock(int file) : file_(file) {}
  int file_ = -1;
};

}  // namespace lrnn::experiments
