#include "base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>

#include "base/checksum.h"
#include "base/error.h"

namespace lrnn {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lrnn_atomic_XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  std::string folder_;
};

std::string error_of(const std::function<void()>& body) {
  try {
    body();
    return "no error";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST_F(AtomicFile, WritesAndReplaces) {
  const std::string nul("a\0b", 3);
  write_atomically(path("x"), nul);
  EXPECT_EQ(read_file(path("x")), nul);
  write_atomically(path("x"), {"one ", "", "two"});
  EXPECT_EQ(read_file(path("x")), "one two");
  write_atomically(path("x"), "");
  EXPECT_EQ(read_file(path("x")), "");
  EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFile, NamesTheFileAndTheReason) {
  EXPECT_EQ(error_of([&] { write_atomically(path("no/x"), "1"); }),
            "cannot write " + path("no/x") + ": No such file or directory");
  EXPECT_EQ(error_of([&] { read_file(path("y")); }),
            "cannot read " + path("y") + ": No such file or directory");
  EXPECT_EQ(error_of([&] { read_file(folder_); }), "cannot read " + folder_ + ": it is not a file");
  fs::create_directory(path("d"));
  EXPECT_EQ(error_of([&] { write_atomically(path("d"), "1"); }),
            "cannot replace " + path("d") + ": Is a directory");
  EXPECT_EQ(files(), 1u);  // no temporary file stays behind
}

// A write that fails half-way, which is what a full disk does: here the largest size of a file.
TEST_F(AtomicFile, AFailedWriteLeavesTheOldFile) {
  write_atomically(path("x"), "old");
  const std::string large(1 << 20, 'n');
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto error = error_of([&] { write_atomically(path("x"), large); });
    ::_exit(error == "cannot write " + path("x") + ": File too large" ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(path("x")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST(Checksum, IsCrc32c) {
  EXPECT_EQ(crc32c(""), "00000000");
  EXPECT_EQ(crc32c("123456789"), "e3069283");            // the check value of the standard
  EXPECT_EQ(crc32c(std::string(32, '\0')), "8a9136aa");  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), "62a8ab43");
}

TEST(Checksum, DoesNotDependOnThePiecesAndSeesEveryBit) {
  std::string text;
  for (int i = 0; i < 61; ++i) text += static_cast<char>(i * 37);
  const std::string sum = crc32c(text);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Crc32c pieces;
    pieces.add(std::string_view(text).substr(0, cut));
    pieces.add(std::string_view(text).substr(cut));
    EXPECT_EQ(pieces.text(), sum);
    // The second piece by its sum alone.
    Crc32c first, second;
    first.add(std::string_view(text).substr(0, cut)),
        second.add(std::string_view(text).substr(cut));
    first.add(second, text.size() - cut);
    EXPECT_EQ(first.text(), sum);
  }
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(crc32c(flipped), sum);
  }
}

}  // namespace
}  // namespace lrnn
