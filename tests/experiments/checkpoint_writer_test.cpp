#include "experiments/checkpoint_writer.h"

#include "model/checkpoint.h"
#include "tests/experiments/folder.h"

namespace lrnn::experiments {
namespace {

namespace fs = std::filesystem;

// Large enough to be written by a thread, or not.
CheckpointFiles checkpoint_of(int64_t step, bool large) {
  const int64_t n = large ? CheckpointWriter::kAtOnce / 4 : 1000;
  return {.model = {{"w", torch::full({n}, float(step))}, {"b", torch::full({3}, 0.5)}},
          .moments = {{"m", torch::full({7, 11}, double(step), torch::kFloat64)},
                      {"step", torch::tensor({step}, torch::kLong)}},
          .state = {.step = step, .best_step = 1},
          .config = "seed: 1\n"};
}

TEST(CheckpointWriter, WritesWhatWasThereWhenItWasCalled) {
  for (const bool large : {false, true}) {
    TemporaryFolder folder;
    const Checkpoints checkpoints(folder / "checkpoints");
    CheckpointWriter writer(checkpoints, 2);
    for (const int64_t step : {1, 2, 3, 4}) {
      auto files = checkpoint_of(step, large);
      writer.save(files);
      files.model.at("w").fill_(-1), files.moments.at("m").fill_(-1);  // the next update
    }
    writer.wait();
    EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{1, 3, 4}));  // the best and the last two
    EXPECT_EQ(fs::read_symlink(folder / "checkpoints/best"), "step-00000001");
    for (const int64_t step : {1, 3, 4}) {
      const auto path = checkpoints.path(step);
      EXPECT_EQ(Checkpoints::damage(path), "");
      const auto want = checkpoint_of(step, large);
      const auto model = model::read_checkpoint(path + "/model.safetensors").tensors,
                 moments = model::read_checkpoint(path + "/optimizer.safetensors").tensors;
      for (const auto& [name, x] : want.model) EXPECT_TRUE(torch::equal(model.at(name), x)) << name;
      for (const auto& [name, x] : want.moments)
        EXPECT_TRUE(torch::equal(moments.at(name), x)) << name;
      EXPECT_EQ(read_state(path + "/state.json"), want.state);
      EXPECT_EQ(read_file(path + "/config.yaml"), want.config);
    }
  }
}

TEST(CheckpointWriter, AnErrorComesBackOnce) {
  for (const bool large : {false, true}) {
    TemporaryFolder folder;
    write(folder / "checkpoints", "a file where a folder should be");
    const Checkpoints checkpoints(folder / "checkpoints");
    CheckpointWriter writer(checkpoints, 2);
    const auto said = error_of([&] {
      writer.save(checkpoint_of(1, large));
      writer.wait();
    });
    EXPECT_HAS(said, "checkpoints");
    EXPECT_NO_THROW(writer.wait());
    EXPECT_NO_THROW(writer.check());
  }
}

TEST(CheckpointWriter, SideBySideOrInTurnTheFilesAreTheSame) {
  TemporaryFolder folder;
  const auto files = checkpoint_of(5, false);
  std::vector<Checkpoints::Sums> sums;
  for (const auto how : {std::launch::deferred, std::launch::async}) {
    const std::string to = folder / std::to_string(int(how));
    fs::create_directories(to);
    sums.push_back(write_files(to, files, how));
    for (const auto& [name, sum] : sums.back()) {
      EXPECT_EQ(sum.bytes, fs::file_size(to + "/" + name)) << name;
      EXPECT_EQ(sum.crc32c, crc32c(read_file(to + "/" + name))) << name;
      EXPECT_EQ(sum.crc32c, sums[0].at(name).crc32c) << name;
    }
  }
  EXPECT_EQ(sums[0].size(), 2u);
}

}  // namespace
}  // namespace lrnn::experiments
