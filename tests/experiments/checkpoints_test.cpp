#include "experiments/checkpoints.h"

#include "experiments/files.h"
#include "tests/experiments/folder.h"

namespace lrnn::experiments {
namespace {

namespace fs = std::filesystem;

void save(const Checkpoints& checkpoints, int64_t step) {
  checkpoints.save(step, [&](const std::string& to) {
    write_atomically(to + "/a", "the first file of step " + std::to_string(step));
    write_atomically(to + "/b", std::string(5000, 'x'));
    return Checkpoints::Sums{};
  });
}

TEST(Checkpoints, KeepsTheLastAndTheBest) {
  TemporaryFolder folder;
  const Checkpoints checkpoints(folder / "checkpoints");
  EXPECT_EQ(checkpoints.newest(nullptr), -1);
  for (int64_t step : {1, 5, 20, 100, 1000}) save(checkpoints, step);
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{1, 5, 20, 100, 1000}));
  checkpoints.mark_best(5);
  checkpoints.prune(2, 5);
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{5, 100, 1000}));
  EXPECT_EQ(checkpoints.newest(nullptr), 1000);
  EXPECT_EQ(read_file(folder / "checkpoints/best/a"), "the first file of step 5");
  save(checkpoints, 1000);  // again
  EXPECT_EQ(Checkpoints::damage(checkpoints.path(1000)), "");
}

TEST(Checkpoints, EveryDamageToEveryFileIsFound) {
  const std::vector<std::pair<const char*, void (*)(const std::string&)>> damages = {
      {"flipped", flip_a_bit},
      {"cut", cut_in_half},
      {"emptied", [](const std::string& p) { fs::resize_file(p, 0); }},
      {"removed", [](const std::string& p) { fs::remove(p); }},
      {"grown", [](const std::string& p) { write(p, read_file(p) + "x"); }}};
  for (const char* name : {"a", "b", "manifest.json"})
    for (const auto& [what, harm] : damages) {
      SCOPED_TRACE(std::string(name) + " " + what);
      TemporaryFolder folder;
      const Checkpoints checkpoints(folder / "checkpoints");
      save(checkpoints, 1);
      save(checkpoints, 2);
      const std::string file = checkpoints.path(2) + "/" + name;
      harm(file);
      std::vector<std::string> damaged;
      EXPECT_EQ(checkpoints.newest(&damaged), 1);
      ASSERT_EQ(damaged.size(), 1u);
      EXPECT_HAS(damaged[0], file);
      checkpoints.tidy(1);
      EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{1}));
      EXPECT_TRUE(fs::exists(checkpoints.path(2) + ".damaged"));

      harm(checkpoints.path(1) + "/" + name);
      EXPECT_HAS(error_of([&] { checkpoints.newest(nullptr); }), checkpoints.path(1) + "/" + name);
    }
}

TEST(Checkpoints, EveryFlippedBitOfTheManifestIsFoundOrHarmless) {
  TemporaryFolder folder;
  const Checkpoints checkpoints(folder / "checkpoints");
  save(checkpoints, 1);
  const std::string file = checkpoints.path(1) + "/manifest.json", whole = read_file(file);
  for (size_t i = 0; i < whole.size() * 8; ++i) {
    auto bytes = whole;
    bytes[i / 8] = char(bytes[i / 8] ^ (1 << (i % 8)));
    write(file, bytes);
    // Between two values a space may become another kind of white space: the same JSON.
    if (std::isspace(static_cast<unsigned char>(bytes[i / 8]))) continue;
    EXPECT_NE(Checkpoints::damage(checkpoints.path(1)), "") << "bit " << i;
  }
}

TEST(Checkpoints, AWriteThatFailsLeavesTheOthersAlone) {
  TemporaryFolder folder;
  const Checkpoints checkpoints(folder / "checkpoints");
  save(checkpoints, 1);
  EXPECT_THROW(checkpoints.save(2,
                                [](const std::string& to) -> Checkpoints::Sums {
                                  write_atomically(to + "/a", "half of it");
                                  throw Error("the disk is full");
                                }),
               Error);
  EXPECT_EQ(checkpoints.steps(), (std::vector<int64_t>{1}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "checkpoints"), {}), 1);
}

TEST(Checkpoints, LeftoversOfAKilledProcessGo) {
  TemporaryFolder folder;
  const Checkpoints checkpoints(folder / "checkpoints");
  save(checkpoints, 1);
  fs::create_directories(folder / "checkpoints/.unfinished-step-00000002");
  write(folder / "checkpoints/.unfinished-step-00000002/a", "half");
  fs::create_directories(folder / "checkpoints/.removed-step-00000000");
  EXPECT_EQ(checkpoints.newest(nullptr), 1);
  checkpoints.tidy(1);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "checkpoints"), {}), 1);
}

TEST(AppendFile, KeepsWhatItIsToldTo) {
  TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  {
    AppendFile file(path, 0);
    file.line("one");
    file.line("two");
    file.sync();
    EXPECT_EQ(file.size(), 8);
  }
  AppendFile(path, 4).line("three");
  EXPECT_EQ(read_file(path), "one\nthree\n");
  EXPECT_HAS(error_of([&] { AppendFile(path, 100); }), "metrics.jsonl has 10 bytes");
  EXPECT_EQ(read_file(path), "one\nthree\n");
}

TEST(AppendFile, AFullDiskIsASentence) {
  const auto error = error_of([] { AppendFile("/dev/full", 0).line("x"); });
  EXPECT_EQ(error,
            "cannot write /dev/full: No space left on device | "
            "free some space, then continue with --resume");
}

}  // namespace
}  // namespace lrnn::experiments
