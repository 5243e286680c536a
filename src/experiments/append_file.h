#pragma once
#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace lrnn::experiments
