#include "training/recordings.h"

#include <gtest/gtest.h>

namespace lrnn::training {
namespace {

// A GPU that is none: it counts what is recorded, and replaying is doing it again.
struct PretendedGpu final : ops::Gpu {
  struct Again final : ops::Recording {
    explicit Again(std::function<void()> what) : work(std::move(what)) {}
    void replay() override { work(); }
    int64_t size() const override { return 1; }
    std::function<void()> work;
  };
  std::vector<const ops::Recording*> made, beside;

  PretendedGpu() : before(ops::gpu()) { ops::set_gpu(this); }
  ~PretendedGpu() override { ops::set_gpu(before); }
  std::unique_ptr<ops::Recording> record(const std::function<void()>& work,
                                         const ops::Recording* other) override {
    auto out = std::make_unique<Again>(work);
    made.push_back(out.get()), beside.push_back(other);
    return out;
  }
  std::shared_ptr<void> own_stream() override { return nullptr; }
  void wait() override {}
  void adamw(const ops::GpuAdamW&, const std::vector<ops::GpuGradient>&) override {}
  void squares(const torch::Tensor&, int64_t, const torch::Tensor&) override {}
  torch::Tensor cross_entropy(const torch::Tensor&, const torch::Tensor&, double,
                              const torch::Tensor&, const torch::Tensor&) override {
    return {};
  }
  std::string name() override { return "none"; }
  int64_t free_memory() override { return 0; }
  torch::Tensor host_memory(int64_t) override { return {}; }
  ops::Gpu* before;
};

struct Count {
  int runs = 0;
};

TEST(Recordings, AreMadeOncePerShapeAndShareTheirMemory) {
  PretendedGpu gpu;
  Recordings<int, Count> all(true);
  for (const int shape : {3, 5, 3, 4, 5}) {
    auto& entry = all.at(shape);
    const auto work = [&entry] { ++entry.runs; };
    if (all.wanted(entry)) all.record(entry, work);
    EXPECT_FALSE(all.wanted(entry));
    // Not the work of this call: what was recorded.
    all.run(entry, [] { FAIL() << "it was not replayed"; });
  }
  ASSERT_EQ(gpu.made.size(), 3u);
  EXPECT_EQ(gpu.beside[0], nullptr);
  for (size_t i = 1; i < 3; ++i) EXPECT_NE(gpu.beside[i], nullptr) << i;
  EXPECT_EQ(all.at(3).runs, 2);
  EXPECT_EQ(all.at(4).runs, 1);
}

TEST(Recordings, AreNotMadeWhenNotWanted) {
  Recordings<int, Count> none(false);
  auto& entry = none.at(1);
  EXPECT_FALSE(none.wanted(entry));
  none.run(entry, [&] { ++entry.runs; });
  EXPECT_EQ(entry.runs, 1);
}

}  // namespace
}  // namespace lrnn::training
