#include <sys/file.h>

#include "experiments/folder.h"
#include "experiments/run.h"
#include "tests/experiments/small_run.h"

// What --overwrite removes, and what it leaves alone.
namespace lrnn::experiments {
namespace {

namespace fs = std::filesystem;

TrainOptions over(const std::string& out) {
  auto options = into(out);
  options.overwrite = true;
  return options;
}

// Every path below the folder, with its contents.
std::map<std::string, std::string> all_of(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    out[entry.path()] = entry.is_regular_file() ? read_file(entry.path()) : "";
  return out;
}

class Overwrite : public testing::Test {
 protected:
  Overwrite() { kill_after(7, small({"train.lr=1e-3"}), into(run_)); }
  void refused(const std::string& why) {
    const auto before = all_of(run_);
    EXPECT_HAS(error_of([&] { train(small(), over(run_)); }), why);
    EXPECT_EQ(all_of(run_), before);
  }
  TemporaryFolder at_;
  const std::string run_ = at_ / "run";
};

TEST_F(Overwrite, PutsANewRunInThePlaceOfTheOld) {
  for (const char* name : {"eval", "figures", "tensorboard", "checkpoints/step-00000009.damaged",
                           "checkpoints/.unfinished-step-00000008"})
    fs::create_directories(run_ + "/" + name);
  for (const char* name :
       {"eval/length.csv", "eval/length.json.partial", "figures/length.svg", "train.log",
        "tensorboard/events.out.tfevents.1.x.2", "checkpoints/step-00000009.damaged/state.json",
        "checkpoints/.unfinished-step-00000008/config.yaml.partial"})
    write(run_ + "/" + name, "old");
  train(small(), over(run_));
  train(small(), into(at_ / "fresh"));
  EXPECT_EQ(bytes_of(run_), bytes_of(at_ / "fresh"));
  EXPECT_EQ(all_of(run_).size(), all_of(at_ / "fresh").size());
}

TEST_F(Overwrite, WorksWhereNothingIs) {
  train(small(), over(at_ / "new"));
  fs::create_directories(at_ / "empty");
  train(small(), over(at_ / "empty"));
}

TEST_F(Overwrite, LeavesFilesOfOthersAlone) {
  for (const char* name : {"notes.txt", "figures/mine.png", "checkpoints/notes",
                           "checkpoints/step-00000006/notes", "eval/deeper/length.csv"}) {
    SCOPED_TRACE(name);
    const auto parent = fs::path(run_ + "/" + name).parent_path();
    const bool made = fs::create_directories(parent);
    write(run_ + "/" + name, "mine");
    refused("not part of a run: " +
            (made && parent.filename() == "deeper" ? "eval/deeper" : std::string(name)));
    fs::remove(run_ + "/" + name);
    if (made) fs::remove_all(run_ + "/figures"), fs::remove_all(run_ + "/eval");
  }
}

TEST_F(Overwrite, FollowsNoLinks) {
  fs::create_directories(at_ / "elsewhere");
  write(at_ / "elsewhere/length.csv", "mine");
  fs::create_directory_symlink(at_ / "elsewhere", run_ + "/eval");
  refused("not part of a run: eval");
  EXPECT_EQ(read_file(at_ / "elsewhere/length.csv"), "mine");
}

TEST_F(Overwrite, LeavesCompiledModelsConfigsAndOtherFoldersAlone) {
  write(run_ + "/compiled.json", "{}");
  refused("is a compiled model");
  fs::create_directories(at_ / "configs");
  write(at_ / "configs/config.yaml", "seed: 1\n");
  EXPECT_HAS(error_of([&] { train(small(), over(at_ / "configs")); }), "was not written by a run");
  fs::create_directories(at_ / "data/raw");
  EXPECT_HAS(error_of([&] { train(small(), over(at_ / "data")); }), "not part of a run: raw");
  EXPECT_FALSE(fs::exists(at_ / "data/lock")) << "not even a lock is left there";
}

TEST_F(Overwrite, LeavesARunThatIsAtWorkAlone) {
  const int other = ::open((run_ + "/lock").c_str(), O_RDWR);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  refused("another process is training in");
  ::close(other);
}

TEST_F(Overwrite, LeavesTheRunWhenTheNewOneCannotBeBuilt) {
  const auto before = all_of(run_);
  auto config = small();
  config.task = Section::from_text("{name: group, group: S3, train: {file: /no/such}}", "task");
  EXPECT_NE(error_of([&] { train(config, over(run_)); }), "no error");
  EXPECT_EQ(all_of(run_), before);
}

TEST_F(Overwrite, LeavesTheRunThatItBeginsWith) {
  for (const auto& from : {run_, run_ + "/checkpoints/step-00000006"})
    EXPECT_HAS(error_of([&] { start_from(from, run_, small(), true); }),
               "which the run begins with");
  EXPECT_EQ(open(run_).step, 6);
  train(small(), into(at_ / "other"));
  EXPECT_EQ(start_from(run_, at_ / "other", small(), true).step, 6);
  EXPECT_EQ(open(at_ / "other").step, 0);
}

// kill -9 in the first steps.
TEST(Died, BeforeItsFirstCheckpointDoesNotBlock) {
  TemporaryFolder at;
  const auto out = at / "run";
  kill_after(2, small(), into(out));
  EXPECT_EQ(error_of([&] { train(small(), into(out)); }),
            out +
                " holds a run that ended before its first checkpoint | --resume begins it again, "
                "--overwrite puts a new one in its place");
  train(small(), into(out, true));
  train(small(), into(at / "fresh"));
  EXPECT_EQ(bytes_of(out), bytes_of(at / "fresh"));
  kill_after(2, small({"train.lr=1"}), over(at / "again"));
  train(small(), over(at / "again"));
  EXPECT_EQ(bytes_of(at / "again"), bytes_of(at / "fresh"));
}

}  // namespace
}  // namespace lrnn::experiments
