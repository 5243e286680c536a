#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// The files of a run that stay open while it is at work.
namespace lrnn::experiments {

// A file that only grows, such as metrics.jsonl. Errors name the file and say why.
class AppendFile {
 public:
  // Keeps the first `keep` bytes of what is there; a file shorter than that is an Error.
  AppendFile(std::string path, int64_t keep);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  void line(const std::string& text) { bytes(text + '\n'); }
  void bytes(std::string_view bytes);
  void sync();  // what was written is on the disk
  int64_t size() const { return size_; }

 private:
  explicit AppendFile(std::string path);
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  int file_ = -1;
  int64_t size_ = 0;
};

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
