#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/atomic_file.h"
#include "base/error.h"

// A folder of its own for each test, gone afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "lrnn-test-XXXXXX").string();
    if (!::mkdtemp(path_.data())) throw lrnn::Error("cannot make " + path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
inline void flip_a_bit(const std::string& path) {
  auto bytes = lrnn::read_file(path);
  bytes[bytes.size() / 2] ^= 4;
  write(path, bytes);
}
inline void cut_in_half(const std::string& path) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
}
// Sentence and hint of the lrnn::Error that `work` must throw.
inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const lrnn::Error& e) {
    return std::string(e.what()) + " | " + e.hint();
  }
  return "no error";
}
#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << "in: " << (text)
