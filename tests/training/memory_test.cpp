#include "training/memory.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "tests/training/random_text.h"
#include "tests/training/small.h"
#include "training/trainer.h"

namespace lrnn::training {
namespace {

using torch::Tensor;

// Outlives main, and with it every object that the allocator might have wanted to use.
Tensor survivor;

class Memory : public testing::Test {
 protected:
  Memory() : before_(c10::GetCPUAllocator()) { reuse_memory(); }
  ~Memory() override { c10::SetCPUAllocator(before_, 1); }
  c10::Allocator* before_;
};

uint64_t at_multiple(const void* p, uint64_t of) { return reinterpret_cast<uint64_t>(p) % of; }

TEST_F(Memory, BlocksAreAlignedAndHoldWhatWasAskedFor) {
  auto* const allocator = c10::GetCPUAllocator();
  for (size_t n = 1; n < (size_t{24} << 20); n += n / 7 + 1) {
    auto p = allocator->allocate(n);
    EXPECT_EQ(at_multiple(p.get(), 64), 0u) << n;
    std::memset(p.mutable_get(), 0xa5, n);
  }
}

TEST_F(Memory, LiveBlocksNeverOverlap) {
  std::vector<Tensor> all;
  for (int64_t i = 0; i < 400; ++i) {
    all.push_back(torch::full({1 + (i * 7919) % 3000}, i, torch::kInt64));
    if (i % 3 == 0) all.erase(all.begin() + (i * 31) % int64_t(all.size()));
  }
  for (const auto& t : all) EXPECT_TRUE((t == t[0]).all().item<bool>());
}

TEST_F(Memory, NextTensorOfTheSizeGetsTheBlock) {
  for (const int64_t n : {10, 1000, 100000, 3000000}) {
    void* const first = torch::empty({n}).data_ptr();
    EXPECT_EQ(torch::empty({n}).data_ptr(), first) << n;
  }
}

TEST_F(Memory, NothingNeedsNoMemory) {
  auto* const allocator = c10::GetCPUAllocator();
  const auto none = allocator->allocate(0);
  EXPECT_EQ(none.get(), nullptr);
  EXPECT_EQ(torch::empty({0, 5}).sum().item<float>(), 0);
}

TEST_F(Memory, RawInterfaceGoesBackToTheCache) {
  auto* const allocator = c10::GetCPUAllocator();
  const auto before = memory_use();
  void* const p = allocator->raw_allocate(5000);
  EXPECT_GE(memory_use().live, before.live + 5000);
  allocator->raw_deallocate(p);
  EXPECT_EQ(memory_use().live, before.live);
}

TEST_F(Memory, TooMuchIsRefusedAndNothingIsLost) {
  const auto before = memory_use();
  EXPECT_THROW(c10::GetCPUAllocator()->allocate(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(c10::GetCPUAllocator()->allocate(size_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(memory_use().live, before.live);
}

TEST_F(Memory, CacheIsBoundedAndCanBeGivenBack) {
  const size_t slack = size_t{64} << 20;
  for (int64_t i = 1; i < 60; ++i) {
    torch::empty({i * 150000});
    const auto use = memory_use();
    EXPECT_LE(use.live + use.cached, use.peak + use.peak / 2 + slack);
  }
  release_memory();
  EXPECT_EQ(memory_use().cached, 0u);
}

TEST_F(Memory, ThreadsShareIt) {
  const size_t before = memory_use().live;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  Tensor handed = torch::full({1000}, 7);
  for (int id = 0; id < 4; ++id)
    threads.emplace_back([&wrong, id, own = handed.clone()]() mutable {
      for (int64_t i = 0; i < 500; ++i) {
        const auto t = torch::full({1 + (i * 37) % 2000}, id, torch::kInt32);
        if (!(t == id).all().item<bool>()) ++wrong;
      }
      own = Tensor();  // dies on another thread than it was made on
    });
  for (auto& thread : threads) thread.join();
  handed = Tensor();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(memory_use().live, before);
}

TEST(MemoryOfTraining, LeavesEveryBit) {
  const auto weights = [] {
    Small small;
    Trainer trainer(*small.model, *small.task, small.config.train, 1);
    for (int64_t s = 0; s < 6; ++s) trainer.update(s, s);
    std::vector<Tensor> out;
    for (const auto& p : small.model->parameters()) out.push_back(p.detach().clone());
    return out;
  };
  const auto plain = weights();
  auto* const before = c10::GetCPUAllocator();
  reuse_memory();
  ASSERT_NE(c10::GetCPUAllocator(), before);
  const auto reused = weights();
  survivor = torch::ones({1000});
  c10::SetCPUAllocator(before, 1);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(torch::equal(plain[i], reused[i])) << i;
}

// What a forward leaves for backward.
TEST_F(Memory, WhatIsMadeAgainIsNotKept) {
  constexpr int64_t kTokens = 2048, kLength = 128, kCount = 16;
  const auto config = load<model::ModelConfig>(
      Section::from_text("width: 64\nlayers: 4\nmixer: {name: delta_net, heads: 2, key_dim: 32}"));
  model::Model model(config, kTokens, 5);
  const RandomText task(kTokens, kLength);
  const auto examples = draw(task, 1, tasks::Split::kTrain, task.train_length, 0, kCount);
  const Batch batch = make_batch(examples.data(), kCount, kTokens);
  const auto kept = [&](model::Model::Recompute what, int64_t blocks = 4) {
    model.recompute(what, blocks);
    const size_t before = memory_use().live;
    model::State state;
    const torch::Tensor h = model.hidden(batch.input, state, batch.context);
    state.clear();
    return double(memory_use().live - before);
  };
  using Recompute = model::Model::Recompute;
  const double all = kept(Recompute::kNothing);
  const double cheap = kept(Recompute::kCheap);
  EXPECT_LT(cheap, 0.85 * all);
  EXPECT_LT(kept(Recompute::kBlocks), 0.3 * all);
  EXPECT_NEAR(kept(Recompute::kCheap, 2), (all + cheap) / 2, 0.02 * all);
}

}  // namespace
}  // namespace lrnn::training
