#include "text/shard.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "text/manifest.h"
#include "text/split_writer.h"

namespace lrnn::text {
namespace {

// A folder that goes away at the end.
struct Folder {
  std::string path = testing::TempDir() + "shard_test";
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

void two_documents(SplitWriter& writer) {
  writer.add(std::vector<int32_t>{1, 70000 % 65536, 7}, 10);
  writer.add(std::vector<int32_t>{1, 3}, 4);
}

TEST(Shard, WhatIsWrittenIsRead) {
  for (const bool wide : {false, true}) {
    const Folder folder;
    SplitWriter writer(folder.path, "train", {wide}, {});
    two_documents(writer);
    const auto part = writer.finish();
    EXPECT_EQ(part.file, "train-00000.bin");
    name_shard(folder.path, part);
    const std::string path = folder.path + "/" + part.file;
    const Shard shard(path);
    ASSERT_EQ(shard.tokens(), 5);
    EXPECT_EQ(shard.format().wide, wide);
    EXPECT_EQ(shard[1], 70000 % 65536);
    EXPECT_EQ(shard[4], 3);
    const auto index = Shard::index(path, 5);
    ASSERT_EQ(index.size(), 2u);
    EXPECT_EQ(index[1].first, 3);
    EXPECT_EQ(index[1].bytes, 4);
  }
}

// What was written after it was written down is taken back.
TEST(SplitWriter, GoesOnWhereItWasWrittenDown) {
  const Folder folder;
  SplitWriter::Open open;
  {
    SplitWriter writer(folder.path, "train", {false}, {});
    two_documents(writer);
    writer.sync();
    open = writer.open();
    writer.add(std::vector<int32_t>{9, 9, 9, 9}, 99);
    writer.sync();
  }
  SplitWriter writer(folder.path, "train", {false}, open);
  writer.add(std::vector<int32_t>{5}, 1);
  const auto part = writer.finish();
  name_shard(folder.path, part);
  name_shard(folder.path, part);  // twice does no harm
  const Shard shard(folder.path + "/" + part.file);
  ASSERT_EQ(shard.tokens(), 6);
  EXPECT_EQ(shard[5], 5);
  EXPECT_EQ(Shard::index(folder.path + "/" + part.file, 6).size(), 3u);
}

TEST(Manifest, ComesBack) {
  const Folder folder;
  SplitWriter writer(folder.path, "eval", {false}, {});
  two_documents(writer);
  Manifest manifest{.tokenizer = "abc",
                    .vocabulary = 5000,
                    .bos = 1,
                    .eos = {},
                    .domain = "prose",
                    .tokens = 5,
                    .documents = 2,
                    .source_bytes = 14,
                    .shards = {writer.finish()}};
  name_shard(folder.path, manifest.shards[0]);
  write_atomically(folder.path + "/manifest.json", manifest.json());
  const auto back = Manifest::open(folder.path);
  EXPECT_EQ(back.json(), manifest.json());
  check_shards(folder.path, back, true);
  manifest.vocabulary = 4464;  // which is the largest id
  EXPECT_THROW(check_shards(folder.path, manifest, true), Error);
  manifest.shards[0].tokens = 6;
  EXPECT_THROW(check_shards(folder.path, manifest, false), Error);
  write_atomically(folder.path + "/manifest.json", "{\"version\": 1}");
  EXPECT_THROW(Manifest::open(folder.path), Error);
}

}  // namespace
}  // namespace lrnn::text
