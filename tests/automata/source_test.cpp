#include "automata/read/source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "automata/cascade/classify.h"

namespace lrnn::automata {
namespace {

constexpr const char* kNext = R"("next":{"p":{"a":"q"},"q":{"a":"p"}}})";

Subject from_text(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(path) << text;
  Source source;
  source.file = path.string();
  return load(source);
}

TEST(Source, AFileWithAcceptingStatesIsARecogniser) {
  const std::string head = R"({"alphabet":["a"],"states":["p","q"],"start":"p",)";
  const auto with = from_text("with.json", head + R"("accept":["q"],)" + kNext);
  EXPECT_TRUE(with.recogniser);
  EXPECT_TRUE(with.automaton.accepts({0}));
  EXPECT_TRUE(from_text("none.json", head + R"("accept":[],)" + kNext).recogniser);
  EXPECT_FALSE(from_text("without.json", head + kNext).recogniser);
  const std::string edges = "s -> p; p -> q -> p [label=a] }";
  EXPECT_TRUE(from_text("with.dot", "digraph { s [shape=point] q [shape=doublecircle] " + edges)
                  .recogniser);
  EXPECT_FALSE(from_text("without.dot", "digraph { s [shape=point] " + edges).recogniser);
}

TEST(Levels, AreToldInPlainWords) {
  EXPECT_EQ(levels_text({{2, "1"}}), "1 level of 2 values");
  EXPECT_EQ(levels_text({{3, "Z3"}}), "1 level of 3 values (permuted by Z3)");
  EXPECT_EQ(levels_text({{4, "1"}, {3, "S3"}, {2, "1"}}),
            "3 levels of 4, 3 (permuted by S3), 2 values");
}

}  // namespace
}  // namespace lrnn::automata
