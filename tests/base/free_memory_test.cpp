#include "base/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace lrnn {
namespace {

// A machine made of files.
class FreeMemory : public testing::Test {
 protected:
  FreeMemory() { write("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n"); }
  ~FreeMemory() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_ = testing::TempDir() + "lrnn_machine_" + std::to_string(::getpid());
};

TEST_F(FreeMemory, IsWhatTheMachineHasLeft) { EXPECT_EQ(free_memory(root_), 8000 * 1024); }

TEST_F(FreeMemory, IsUnknownWhereNobodySays) {
  EXPECT_EQ(free_memory(root_ + "/nowhere"), INT64_MAX);
}

TEST_F(FreeMemory, IsNoMoreThanAGroupAllows) {
  write("/proc/self/cgroup", "0::/job/step\n");
  write("/sys/fs/cgroup/job/step/memory.max", "max\n");
  write("/sys/fs/cgroup/job/step/memory.current", "700000\n");
  EXPECT_EQ(free_memory(root_), 8000 * 1024);
  // The group around it has a limit. What it holds of files can be dropped.
  write("/sys/fs/cgroup/job/memory.max", "1000000\n");
  write("/sys/fs/cgroup/job/memory.current", "700000\n");
  EXPECT_EQ(free_memory(root_), 300000);
  write("/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 50000\n");
  EXPECT_EQ(free_memory(root_), 350000);
  write("/sys/fs/cgroup/job/step/memory.max", "700001\n");
  EXPECT_EQ(free_memory(root_), 1);
  write("/sys/fs/cgroup/job/step/memory.max", "5\n");
  EXPECT_EQ(free_memory(root_), 0);
}

TEST_F(FreeMemory, KnowsTheOlderGroups) {
  write("/proc/self/cgroup", "3:cpu:/x\n4:memory:/docker/abc\n");
  // In a container the folder is the group itself, whatever its path says.
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2000\n");
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1500\n");
  EXPECT_EQ(free_memory(root_), 500);
  write("/sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 40\n");
  EXPECT_EQ(free_memory(root_), 540);
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(free_memory(root_), 8000 * 1024);
}

TEST_F(FreeMemory, OfThisMachineIsPlausible) {
  EXPECT_GT(free_memory(), 1 << 20);
  EXPECT_LT(free_memory(), int64_t{1} << 50);
}

}  // namespace
}  // namespace lrnn
