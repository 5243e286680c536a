#include "experiments/event_file.h"

#include <bit>

#include "base/checksum.h"
#include "tests/experiments/small_run.h"

namespace lrnn::experiments {
namespace {

namespace fs = std::filesystem;

std::string hex(const std::string& bytes) {
  std::string out;
  for (const unsigned char c : bytes) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", unsigned(c));
    out += text;
  }
  return out;
}

// What PyPI's tensorboard 2.21 makes of the same messages.
TEST(EventFile, HasTheBytesThatTensorBoardWrites) {
  EXPECT_EQ(hex(tf_record(version_event(1.5))),
            "1800000000000000a37f4b22"
            "09000000000000f83f1a0d627261696e2e4576656e743a32"
            "2a28646c");
  EXPECT_EQ(hex(tf_record(restart_event(1700000000.25, 301))),
            "100000000000000095fbfe18"
            "0900001040fc54d94110ad023a020801"
            "cb79b93b");
  EXPECT_EQ(hex(tf_record(
                scalars_event(1700000000.25, 300, {{"train/loss", 0.1f}, {"eval/scaled", -2.0f}}))),
            "3500000000000000d6c55de6"
            "0900001040fc54d94110ac022a270a110a0a747261696e2f6c6f737315cdcccc3d"
            "0a120a0b6576616c2f7363616c656415000000c0"
            "30a9d020");
}

// The payloads of a file's records; every length and checksum must be right.
std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> out;
  const auto bytes = read_file(file);
  for (size_t at = 0; at < bytes.size();) {
    uint64_t size = 0;
    std::memcpy(&size, bytes.data() + at, 8);
    out.push_back(bytes.substr(at + 12, size));
    EXPECT_EQ(bytes.substr(at, size + 16), tf_record(out.back()));
    at += size + 16;
  }
  return out;
}

std::vector<std::string> event_files(const std::string& run) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(run + "/tensorboard"))
    out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

int64_t step_of_event(const std::string& event) {  // after the 9 bytes of its time
  return event[9] == 0x10 ? int64_t(event[10]) : 0;
}

TEST(EventFile, EveryProcessWritesOneAndTakesBackWhatIsDoneAgain) {
  TemporaryFolder at;
  const auto out = at / "run";
  auto options = into(out);
  options.tensorboard = true;
  kill_after(8, small(), options);  // checkpoints of steps 3 (or 4) and 6
  train(small(), into(out, true));  // goes on by itself
  ASSERT_EQ(event_files(out).size(), 2u);
  const auto first = records(event_files(out)[0]), second = records(event_files(out)[1]);
  EXPECT_HAS(first.at(0), "brain.Event:2");
  EXPECT_EQ(first.size(), 4u) << "eval 4, train 5 and eval 8 after it";
  EXPECT_EQ(step_of_event(first.back()), 8);
  EXPECT_EQ(hex(second.at(1).substr(9)), "10073a020801") << "from step 7 on it counts no more";
  EXPECT_EQ(step_of_event(second.at(2)), 8);
  EXPECT_HAS(second.at(2), "eval/scaled");
  EXPECT_HAS(second.at(3), "train/grad_norm");
  EXPECT_EQ(step_of_event(second.back()), 13);
}

TEST(EventFile, TellsWhatHappenedBeforeItWasAskedFor) {
  TemporaryFolder at;
  const auto out = at / "run";
  train(small(), into(out));
  const auto metrics = read_file(out + "/metrics.jsonl");
  auto options = into(out, true);
  options.tensorboard = true;
  train(small(), options);
  ASSERT_EQ(event_files(out).size(), 1u);
  EXPECT_EQ(records(event_files(out)[0]).size(), 1 + 7u) << "a version and seven lines";
  EXPECT_EQ(read_file(out + "/metrics.jsonl"), metrics);
}

TEST(EventFile, ChangesNothingElse) {
  TemporaryFolder at;
  auto options = into(at / "with");
  options.tensorboard = true;
  train(small(), options);
  train(small(), into(at / "without"));
  EXPECT_EQ(bytes_of(at / "with"), bytes_of(at / "without"));
  EXPECT_FALSE(fs::exists(at / "without/tensorboard"));
}

}  // namespace
}  // namespace lrnn::experiments
