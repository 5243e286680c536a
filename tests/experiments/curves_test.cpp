#include "experiments/metrics.h"
#include "tests/experiments/small_run.h"

namespace lrnn::experiments {
namespace {

namespace fs = std::filesystem;

TEST(Curves, AreTheLinesOfTheRun) {
  TemporaryFolder at;
  const auto out = at / "run";
  kill_after(11, small(), into(out));
  write(out + "/metrics.jsonl", read_file(out + "/metrics.jsonl") +
                                    "{\"kind\":\"extended\",\"step\":10}\n{\"kind\":\"eval\",\"st");
  const auto curves = read_curves(out);
  EXPECT_EQ(curves.steps, 13);
  EXPECT_EQ(curves.train.size(), 2u);
  EXPECT_EQ(curves.eval.size(), 2u) << "a line that was cut short is passed over";
  EXPECT_EQ(curves.changes.size(), 1u);
}

TEST(Curves, OfNothingAreASentence) {
  TemporaryFolder at;
  EXPECT_HAS(error_of([&] { read_curves(at / "none"); }), "is not a run");
  kill_after(2, small(), into(at / "early"));
  EXPECT_HAS(error_of([&] { read_curves(at / "early"); }), "has no metrics yet");
  train(small(), into(at / "run"));
  EXPECT_HAS(error_of([&] { read_curves(at / "run/checkpoints/best"); }), "is a checkpoint");
}

}  // namespace
}  // namespace lrnn::experiments
