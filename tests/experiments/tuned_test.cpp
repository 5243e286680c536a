#include "compile/long_run.h"
#include "experiments/compiled.h"
#include "experiments/run.h"
#include "model/checkpoint.h"
#include "tests/experiments/folder.h"

// Compiled models that are trained further, with the settings that compile writes.
namespace lrnn::experiments {
namespace {

automata::Source regex(const std::string& expression, const std::string& alphabet) {
  automata::Source out;
  out.has_regex = true, out.regex = expression, out.alphabet = alphabet;
  return out;
}
automata::Source example(const std::string& name) {
  automata::Source out;
  out.example = name;
  return out;
}
automata::Source group(const std::string& name, const std::string& letters) {
  automata::Source out;
  out.group = name, out.letters = letters;
  return out;
}

void compile_to(const std::string& folder, const automata::Source& source,
                const compile::Options& options = {}) {
  const auto c = compile::compile(automata::load(source), options);
  write_compiled(folder, *c, compile::margin_of(*c), source);
}

TrainResult tune(const std::string& from, const std::string& out,
                 std::vector<std::string> overrides) {
  const auto config = read_config(from + "/config.yaml", overrides);
  start_from(from, out, config);
  TrainOptions options;
  options.out = out, options.resume = true;
  return train(config, options);
}

// Wrong answers on many words of every length up to 256.
int64_t wrong_up_to_256(const std::string& folder) {
  const auto run = open(folder);
  const auto own = run.task->followed();
  const auto tokens = tokens_of(*run.task, *own);
  int64_t wrong = 0;
  for (const int64_t length : {4, 16, 64, 256})
    wrong += compile::short_run(*run.model, own->automaton, tokens, length).wrong;
  return wrong;
}

const std::vector<std::pair<std::string, automata::Source>>& five() {
  static const std::vector<std::pair<std::string, automata::Source>> out = {
      {"parity", example("parity")},
      {"flip_flop", example("flip_flop")},
      {"s3", group("S3", "")},
      {"s5", group("S5", "generators")},
      {"abba", regex("(ab|ba)*", "ab")}};
  return out;
}

TEST(Tuned, StaysRightOnItsOwnTask) {
  for (const auto& [name, source] : five()) {
    TemporaryFolder folder;
    compile_to(folder / name, source);
    const auto result = tune(folder / name, folder / "tuned", {"train.steps=100"});
    EXPECT_EQ(result.evaluation.accuracy(), 1) << name;
    EXPECT_EQ(wrong_up_to_256(folder / "tuned"), 0) << name;
  }
}

// One setting for all: what is written does not depend on the automaton.
TEST(Tuned, HasOneSetting) {
  std::string first;
  for (const auto& [name, source] : five()) {
    TemporaryFolder folder;
    compile_to(folder / name, source);
    YAML::Emitter text;
    text << YAML::LoadFile(folder / name + "/config.yaml")["train"];
    if (first.empty()) first = text.c_str();
    EXPECT_EQ(std::string(text.c_str()), first) << name;
  }
}

// Odd for even: recognisers, a group whose elements become reject and accept, another profile.
TEST(Tuned, LearnsParityRelabelled) {
  struct Case {
    automata::Source source;
    std::vector<std::string> overrides;
    compile::Profile profile = compile::Profile::kNative;
  };
  for (const auto& [source, overrides, profile] : std::vector<Case>{
           {regex("(a|ba*b)*", "ab"), {"task.regex=(a|ba*b)*ba*"}},
           {example("parity"),
            {"task.example=", "task.regex=(0|10*1)*", "task.alphabet=01", "task.answers=accept"}},
           {group("Z2", ""),
            {"task.group=", "task.regex=(0|10*1)*", "task.alphabet=01", "task.answers=accept"}},
           {regex("(a|ba*b)*", "ab"), {"task.regex=(a|ba*b)*ba*"}, compile::Profile::kNativeBos}}) {
    TemporaryFolder folder;
    compile::Options options;
    options.profile = profile;
    compile_to(folder / "even", source, options);
    const auto before = open(folder / "even");
    const auto result = tune(folder / "even", folder / "odd", overrides);
    EXPECT_EQ(result.step, 1000);
    EXPECT_EQ(result.evaluation.accuracy(), 1) << overrides.back();
    EXPECT_EQ(wrong_up_to_256(folder / "odd"), 0) << overrides.back();
    const auto after = open(folder / "odd");
    const auto own = before.task->followed();
    const auto tokens = tokens_of(*before.task, *own);
    EXPECT_GT(compile::short_run(*after.model, own->automaton, tokens, 64).wrong, 0);
  }
}

std::string refused(const std::string& from, const std::string& out,
                    const std::vector<std::string>& overrides) {
  auto said = error_of([&] { tune(from, out, overrides); });
  EXPECT_FALSE(std::filesystem::exists(out)) << said;
  return said;
}

TEST(Tuned, IsRefusedWhereItCannotBeDone) {
  TemporaryFolder folder;
  compile_to(folder / "even", regex("(a|ba*b)*", "ab"));
  const auto out = folder / "out";
  EXPECT_HAS(refused(folder / "even", out, {"task.regex=(a|b|c)*", "task.alphabet=abc"}),
             "reads a b, and the task's letters are a b c");
  EXPECT_HAS(refused(folder / "even", out, {"task.regex=(0|1)*", "task.alphabet=01"}),
             "reads a b, and the task's letters are 0 1");
  EXPECT_HAS(refused(folder / "even", out, {"train.precision=bfloat16"}), "in float32 only");

  compile::Options options;
  options.profile = compile::Profile::kFp64;
  compile_to(folder / "wide", regex("(a|ba*b)*", "ab"), options);
  EXPECT_HAS(refused(folder / "wide", out, {}), "AdamW trains float32 weights");
  options.profile = compile::Profile::kFla;
  compile_to(folder / "fla", example("s5_points"), options);
  EXPECT_HAS(refused(folder / "fla", out, {}), "no margin could be shown for the gates of layer 1");
}

// Folders of earlier versions are run and evaluated, but neither proved nor trained.
TEST(Tuned, FoldersWithoutAMarginAreNamed) {
  TemporaryFolder folder;
  compile_to(folder / "even", regex("(a|ba*b)*", "ab"));
  const auto file = folder / "even/compiled.json";
  auto about = nlohmann::json::parse(read_file(file));
  about.erase("margin");
  write(file, about.dump());
  EXPECT_HAS(refused(folder / "even", folder / "out", {}), "was compiled by an earlier lrnn");
  EXPECT_HAS(error_of([&] { recompile(open(folder / "even")); }), "compile it again");
}

}  // namespace
}  // namespace lrnn::experiments
