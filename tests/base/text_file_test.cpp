#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/config.h"
#include "base/text.h"

namespace lrnn {
namespace {

class TextFiles : public testing::Test {
 protected:
  TextFiles() { std::filesystem::create_directories(folder_); }
  ~TextFiles() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }
  static std::string error_of(const std::string& path) {
    try {
      read_text_file(path, {.hint = "a hint", .most_bytes = 100});
      return "no error";
    } catch (const Error& e) {
      return std::string(e.what()) + " | " + e.hint();
    }
  }
  std::string folder_ = testing::TempDir() + "lrnn_text_" + std::to_string(::getpid());
};

TEST_F(TextFiles, AreReadWhole) {
  const std::string text = "a: b\r\n\tü\n";
  EXPECT_EQ(read_text_file(write("a", text), {}), text);
}

TEST_F(TextFiles, PipesToo) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "ab", 2), 2);
  ::close(ends[1]);
  EXPECT_EQ(read_text_file("/dev/fd/" + std::to_string(ends[0]), {}), "ab");
  ::close(ends[0]);
}

TEST_F(TextFiles, AllElseIsOneSentenceWithAHint) {
  EXPECT_EQ(error_of(folder_ + "/no"), "there is no file " + folder_ + "/no | a hint");
  EXPECT_EQ(error_of(""), "there is no file  | a hint");
  EXPECT_EQ(error_of(folder_), folder_ + " is a folder, not a file | a hint");
  EXPECT_EQ(error_of("/dev/null"), "/dev/null is empty | a hint");
  EXPECT_EQ(error_of("/dev/zero"), "/dev/zero is not a text file | a hint");
  const auto binary = write("binary", std::string("\x7f"
                                                  "ELF\0\1",
                                                  6));
  EXPECT_EQ(error_of(binary), binary + " is not a text file | a hint");
  const auto file = write("file", "x");
  EXPECT_EQ(error_of(file + "/below"), "there is no file " + file + "/below | a hint");
  const auto large = write("large", std::string(101, 'x'));
  EXPECT_EQ(error_of(large), large + " is larger than 100 bytes | a hint");
  ::chmod(file.c_str(), 0);
  if (::access(file.c_str(), R_OK) != 0) {  // root may read anything
    EXPECT_EQ(error_of(file), "cannot read " + file + ": Permission denied | a hint");
  }
}

TEST_F(TextFiles, ConfigsAreSuch) {
  try {
    Section::from_file(folder_);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), folder_ + " is a folder, not a file");
    EXPECT_NE(e.hint(), "");
  }
}

}  // namespace
}  // namespace lrnn
