#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "base/atomic_file.h"
#include "base/sha256.h"
#include "tasks/shuffle.h"
#include "tasks/text_order.h"
#include "tests/tasks/from_yaml.h"
#include "text/manifest.h"
#include "text/shard.h"

namespace lrnn::tasks {
namespace {

namespace fs = std::filesystem;

// A corpus without texts: ids that say where they stand, 7 to a document, BOS (id 0) first.
struct Made {
  std::string folder;
  std::vector<int32_t> train, eval;

  explicit Made(const std::string& name, int64_t train_tokens = 700, int64_t eval_tokens = 70,
                std::vector<int64_t> shards = {140, 210, 350})
      : folder(cat(testing::TempDir(), "lrnn-text-", ::getpid(), "-", name)) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    text::Manifest m;
    m.tokenizer = sha256("none"), m.vocabulary = 1000, m.bos = 0, m.domain = name;
    write("train", train_tokens, std::move(shards), 1, train, m);
    write("eval", eval_tokens, {eval_tokens}, 500, eval, m);
    write_atomically(folder + "/manifest.json", m.json());
  }
  ~Made() { fs::remove_all(folder); }

  void write(const std::string& split, int64_t tokens, std::vector<int64_t> shards, int32_t first,
             std::vector<int32_t>& all, text::Manifest& m) const {
    for (int64_t i = 0; i < tokens; ++i) all.push_back(i % 7 ? first + int32_t(i % 400) : 0);
    const text::ShardFormat format;
    for (size_t s = 0, at = 0; s < shards.size(); at += size_t(shards[s++])) {
      const auto path = cat(folder, "/", split, "-0000", s, ".bin");
      std::string bytes = format.header(shards[s]), index;
      format.append({all.data() + at, size_t(shards[s])}, bytes);
      for (int64_t i = 0; i < shards[s]; i += 7) {
        index += text::index_entry(uint64_t(i), 60);
        ++m.documents, m.source_bytes += 60;
      }
      write_atomically(path, bytes), write_atomically(text::index_file(path), index);
      m.shards.push_back({fs::path(path).filename(), split, shards[s], sha256(bytes)});
    }
  }
};

TaskPtr text_task(const std::string& data, const std::string& more = "") {
  return task(
      cat("{name: text, data: ", data, ", train: {length: 32}, eval: {length: 16}", more, "}"));
}

TEST(Text, WindowsAreTheCorpusInOrderWithinAndShuffledBetween) {
  const Made made("one");
  const auto t = text_task(made.folder);
  std::set<int64_t> seen;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> order;
    for (uint64_t i = 0; i < 21; ++i) {  // 700 / 32
      const auto e = t->sample(1, Split::kTrain, epoch * 21 + i);
      ASSERT_EQ(e.input.size(), 32u);
      // Which window is it? Across shards, too.
      int64_t at = -1;
      for (int64_t w = 0; w < 21; ++w)
        if (std::equal(e.input.begin(), e.input.end(), made.train.begin() + w * 32)) at = w;
      ASSERT_GE(at, 0);
      order.push_back(at);
      for (int64_t j = 0; j < 31; ++j) EXPECT_EQ(e.target[j], e.input[j + 1]);
      EXPECT_EQ(e.target[31], -1);
    }
    auto sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t w = 0; w < 21; ++w) EXPECT_EQ(sorted[w], w);
    EXPECT_NE(order, sorted);
    seen.insert(order[0] * 21 + order[1]);
  }
  EXPECT_GT(seen.size(), 1u) << "a new order in every epoch";
}

TEST(Text, NextHasATargetAtEveryPosition) {
  const Made made("next", 353, 49, {353});
  const auto t = text_task(made.folder, ", targets: next");
  std::set<int64_t> firsts;
  for (uint64_t i = 0; i < 11; ++i) {  // (353 - 1) / 32
    const auto e = t->sample(3, Split::kTrain, i);
    EXPECT_EQ(e.input.size(), 32u);
    EXPECT_EQ(e.target.size(), 32u);
    for (int64_t j = 0; j + 1 < 32; ++j) EXPECT_EQ(e.target[j], e.input[j + 1]);
    EXPECT_GE(e.target[31], 0);
    firsts.insert(e.input[1]);
  }
  EXPECT_EQ(firsts.size(), 11u);
}

TEST(Text, EvaluationReadsTheHeldOutWindowsOneAfterAnother) {
  const Made made("held");
  const auto t = text_task(made.folder);
  EXPECT_EQ(t->most_samples({16, 16}), 4);
  for (uint64_t i = 0; i < 4; ++i) {
    const auto e = t->sample(9, Split::kEval, i);
    EXPECT_TRUE(std::equal(e.input.begin(), e.input.end(), made.eval.begin() + int64_t(i) * 16));
  }
  // 60 bytes to the 6 tokens behind each BOS: 10 a token.
  const auto e = t->sample(9, Split::kEval, 0);
  int64_t said = 0;
  for (int64_t token : e.target) said += token > 0;
  EXPECT_DOUBLE_EQ(e.bytes, 10.0 * double(said));
}

TEST(Text, MaskTakesTheBoundariesAndResetMarksThem) {
  const Made made("bounds");
  const auto keep = text_task(made.folder), mask = text_task(made.folder, ", boundary: mask"),
             reset = text_task(made.folder, ", documents: reset");
  for (uint64_t i = 0; i < 30; ++i) {
    const auto a = keep->sample(2, Split::kTrain, i), b = mask->sample(2, Split::kTrain, i),
               c = reset->sample(2, Split::kTrain, i);
    EXPECT_EQ(a.input, b.input);
    EXPECT_TRUE(a.starts.empty() && b.starts.empty());
    std::vector<int64_t> starts;
    for (int64_t j = 0; j < 32; ++j) {
      if (j && a.input[j] == 0) starts.push_back(j);
      EXPECT_EQ(b.target[j], a.target[j] == 0 ? -1 : a.target[j]);
    }
    EXPECT_EQ(c.starts, starts);
    EXPECT_EQ(c.target, a.target);
  }
}

TEST(Text, WeightsAreExactInEveryBlock) {
  const Mixture three({3, 1, 1.0 / 3});
  EXPECT_EQ(std::accumulate(three.counts().begin(), three.counts().end(), uint64_t{0}), 65536u);
  for (const uint64_t block : {0, 1, 5}) {
    std::vector<std::set<uint64_t>> numbers(3);
    for (uint64_t i = 0; i < Mixture::kBlock; ++i) {
      const auto place = three.at(7, block * Mixture::kBlock + i);
      numbers[place.source].insert(place.number);
    }
    for (size_t s = 0; s < 3; ++s) {
      EXPECT_EQ(numbers[s].size(), three.counts()[s]);
      EXPECT_EQ(*numbers[s].begin(), block * three.counts()[s]);
      const double shares[] = {9, 3, 1};
      EXPECT_NEAR(double(three.counts()[s]), 65536 * shares[s] / 13, 1);
    }
  }
}

TEST(Text, TheOrderIsAPermutationForAnyNumberOfWindows) {
  for (const uint64_t n : {1, 2, 3, 1000, 65537}) {
    std::vector<char> seen(n);
    for (uint64_t i = 0; i < n; ++i) ++seen[window_of(5, {0, n + i}, n)];
    EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](char c) { return c == 1; })) << n;
  }
}

TEST(Text, DomainsTakeTurnsUntilOneIsEmpty) {
  const Turns turns({2, 4, 1});
  std::string order;
  for (uint64_t i = 0; i < turns.total(); ++i)
    order += cat(turns.at(i).source, turns.at(i).number, " ");
  EXPECT_EQ(order, "00 10 20 01 11 12 13 ");

  const Made a("prose"), b("code", 700, 140);
  const auto t = text_task(cat("[{path: ", a.folder, ", weight: 3}, ", b.folder, "]"));
  EXPECT_EQ(t->domains(), (std::vector<std::string>{"prose", "code"}));
  EXPECT_EQ(t->most_samples({16, 16}), 4 + 8);
  EXPECT_EQ(t->sample(1, Split::kEval, 0).domain, 0);
  EXPECT_EQ(t->sample(1, Split::kEval, 1).domain, 1);
  EXPECT_EQ(t->sample(1, Split::kEval, 11).domain, 1);
}

std::string error_when(const std::function<void()>& act) {
  try {
    act();
    return "no error";
  } catch (const Error& e) {
    return cat(e.what(), " | ", e.hint());
  }
}

TEST(Text, SaysWhatIsWrong) {
  const Made made("bad");
  EXPECT_NE(error_when([&] {
              text_task("nowhere/at/all")->sample(1, Split::kTrain, 0);
            }).find("there is no folder nowhere/at/all"),
            std::string::npos);
  EXPECT_NE(error_when([&] { task("name: text")->vocabulary(); }).find("no data"),
            std::string::npos);
  EXPECT_NE(error_when([&] {
              task(cat("{name: text, data: ", made.folder, ", eval: {length: 512}}"))
                  ->sample(1, Split::kEval, 0);
            }).find("has 70 tokens, and a window needs 512"),
            std::string::npos);
  EXPECT_NE(error_when([&] {
              text_task(made.folder, ", vocabulary: 7")->sample(1, Split::kTrain, 0);
            }).find("vocabulary of 1000"),
            std::string::npos);
  EXPECT_NE(error_when([&] { task("{name: text, train: {length: [3, 7]}}"); }).find("one number"),
            std::string::npos);
}

TEST(Text, ADamagedShardIsNamedTheFirstTimeAndEverAfter) {
  const std::string cache = cat(testing::TempDir(), "lrnn-cache-", ::getpid());
  ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const Made made("damage");
  text_task(made.folder)->verify(false);
  EXPECT_TRUE(fs::exists(cache + "/lrnn/verified"));
  const auto path = made.folder + "/train-00001.bin";
  auto bytes = read_file(path);
  bytes[1100] = char(bytes[1100] ^ 1);
  write_atomically(path, bytes);
  for (const bool again : {false, true})
    EXPECT_NE(error_when([&] { text_task(made.folder)->verify(again); }).find("train-00001.bin"),
              std::string::npos);
  ::unsetenv("XDG_CACHE_HOME");
  fs::remove_all(cache);
}

// The plays as they lie in the tree: texts with a tokenizer beside them.
TEST(Text, AFolderOfTextsIsReadAsItIs) {
  const auto t = task(cat("{name: text, data: ", LRNN_SOURCE_DIR,
                          "/tests/data/plays, train: {length: 64}, eval: {length: 64}}"));
  EXPECT_EQ(t->domains(), std::vector<std::string>{"plays"});
  EXPECT_GT(t->most_samples({64, 64}), 100);
  EXPECT_EQ(t->material()->bos, 1);
  double bytes = 0;
  std::string text;
  for (int64_t i = 0; i < t->most_samples({64, 64}); ++i) {
    const auto e = t->sample(1, Split::kEval, uint64_t(i));
    bytes += e.bytes, text += t->text(e);
  }
  // A tenth of 298,115 bytes; a window's first token is no target.
  EXPECT_NEAR(bytes, 29800 * 63.0 / 64, 200);
  EXPECT_NE(text.find("PROSPERO"), std::string::npos);
  // Nothing of it is trained on.
  const auto last = t->text(t->sample(1, Split::kEval, 10));
  std::string train;
  for (uint64_t i = 0; i < 3000; ++i) train += t->text(t->sample(1, Split::kTrain, i));
  EXPECT_EQ(train.find(last.substr(20, 60)), std::string::npos);
}

}  // namespace
}  // namespace lrnn::tasks
