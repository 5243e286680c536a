#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "base/atomic_file.h"
#include "mixers/mixer.h"
#include "ops/torch.h"
#include "tests/close.h"
#include "tests/mixers/skeleton.cpp"  // as a user would write it, but in no list
#include "tests/tangent.h"

// What mixer.h promises, for every registered mixer with its defaults and for every switch, and for
// the one that CONTRIBUTING.md shows.
namespace lrnn::mixers {
namespace {

constexpr int64_t kWidth = 12;  // three units in each of four heads

const Entry& entry_of(const Section& at) {
  static const Entry skeleton = entry_leaky("leaky", "");
  return at.text("name") == "leaky" ? skeleton : find(at);
}
MixerPtr made(const std::string& yaml) {
  const Section at = Section::from_text(yaml);
  return entry_of(at).make(kWidth, at);
}

std::vector<std::string> configs() {
  std::vector<std::string> out;
  for (const auto& entry : all()) out.push_back(cat("name: ", entry.name));
  const std::string base = "name: delta_product\nheads: 2\nkey_dim: 3\nvalue_dim: 4\n";
  for (const char* more :
       {"conv: 0",
        "householders: 2",
        "householders: 3\nconv: 2\nrange: [0, 1]",
        "forget_gate: true",
        "output_gate: true\nconv: 0",
        "householders: 2\nforget_gate: true\noutput_gate: true",
        "conv: 1",
        "qk_activation: relu\nconv: 3",
        "qk_activation: elu\nqk_norm: sum",
        "qk_activation: elu\nconv: 0\nqk_norm: sum",
        "qk_activation: none\nconv: 0",
        "qk_activation: none\nv_activation: none",
        "v_activation: none\nconv: 0\nbeta: false",
        "qk_norm: none\nrange: [0, 1]\nbeta: false",
        "value_heads: 4\nforget_gate: true\noutput_gate: true",
        "value_heads: 6\nhouseholders: 2\nconv: 0",
        "forget_gate: true\ngate_per: channel",
        "value_heads: 4\nforget_gate: true\ngate_per: channel\nconv: 0\nhouseholders: 2",
        "value_heads: 4\nqk_norm: sum\nqk_activation: elu",
        "conv: 0\nstep: hard_sigmoid",
        "householders: 2\nstep: straight_through\nforget_gate: true"})
    out.push_back(base + more);
  for (const char* more :
       {"name: delta_product\nheads: 1\nkey_dim: 4",
        "name: mamba\nconv: 1\nrange: [0, 1]",
        "name: mamba\nexpand: 1\nstate_dim: 3\ndt_rank: 2",
        "name: gla\nheads: 2\nkey_dim: 3\nvalue_dim: 5\nrange: [-1, 1]\ngate_normaliser: 1",
        "name: gla\nheads: 2\nconv: 3\noutput_gate: false",
        "name: rwkv7\nheads: 2\nhead_dim: 5",
        "name: rwkv7\nheads: 3\nhead_dim: 4\nrange: [0, 2]\ndecay_rank: 2\ngate_rank: 3",
        "name: slstm\nheads: 2\nbias: standard",
        "name: slstm\nconv: 4",
        "name: slstm\nconv: 1\nheads: 1",
        "name: mlstm\nconv: 1\nheads: 2",
        "name: mlstm\nexpand: 1\nblock: 8\nheads: 1",
        "name: attention\npositions: learned",
        "name: attention\npositions: none",
        "name: attention\nheads: 1\nhead_dim: 6",
        "name: attention\nheads: 4\nkv_heads: 2",
        "name: gla\nclamp: -0.05\nheads: 2",
        "name: rwkv7\nheads: 2\nhead_dim: 3\nvalue_rank: 4\nkey_eps: 0.000001",
        "name: titans\nheads: 2\nkey_dim: 3\nvalue_dim: 5\nrange: [0, 2]\nconv: 0",
        "name: titans\noutput_gate: true\nconv: 2",
        "name: ttt\nheads: 2\nhead_dim: 5\nmini_batch: 3\noutput_gate: true",
        "name: ttt\nheads: 3\nhead_dim: 4\nmini_batch: 1\nconv: 2\nstep: 2",
        "name: diagonal\nrange: [0, 1]",
        "name: matrix_product\nsize: 3",
        "name: leaky",
        "name: leaky\nrange: [-1, 1]"})
    out.emplace_back(more);
  return out;
}

class Contract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    torch::manual_seed(3);
    at::set_num_threads(1);  // these layers are too small to share
    mixer_ = made(GetParam());
    mixer_->initialise({.scheme = "chomsky", .gain = 1, .std = 0.02, .seed = 5});
    mixer_->to(torch::kFloat64);
    // Some weights begin at zero, where their part of the layer does nothing.
    const torch::NoGradGuard no_grad;
    for (auto& w : mixer_->parameters()) w.add_(0.3 * torch::randn_like(w));
  }
  Tensor random(torch::IntArrayRef shape) { return torch::randn(shape, torch::kFloat64); }
  Tensor run(const Tensor& x, State& state, const Context& context = {}) {
    return mixer_->forward({x, {}}, state, context);
  }
  Tensor run(const Tensor& x) {
    State state;
    return run(x, state);
  }
  // Asks for the last row of each sequence.
  static Context at_ends(const Tensor& x, const Tensor& cu_seqlens = {}) {
    Context out{.cu_seqlens = cu_seqlens};
    out.read_at = out.last_rows(x.size(0), x.size(1), 1).squeeze(1);
    return out;
  }
  static void expect_same(const State& got, const State& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_CLOSE(cat("state ", i), got[i], want[i]);
  }
  MixerPtr mixer_;
};

TEST_P(Contract, SplitAnywhereIsTheWhole) {
  const int64_t T = 7;
  const Tensor x = random({2, T, kWidth});
  State whole;
  const Tensor y = run(x, whole);
  ASSERT_EQ(y.sizes(), x.sizes());
  for (int64_t cut = 0; cut <= T; ++cut) {
    State state;
    std::vector<Tensor> parts;
    if (cut > 0) parts.push_back(run(x.slice(1, 0, cut), state));
    if (cut < T) parts.push_back(run(x.slice(1, cut), state));
    EXPECT_CLOSE(cat("cut at ", cut), torch::cat(parts, 1), y);
    expect_same(state, whole);
  }
}

TEST_P(Contract, StepByStepIsTheWhole) {
  const Tensor x = random({2, 6, kWidth});
  State whole, state;
  const Tensor y = run(x, whole);
  std::vector<Tensor> steps;
  for (int64_t t = 0; t < x.size(1); ++t) {
    // The state survives being stored and read again.
    for (auto& part : state) part = part.detach().clone();
    steps.push_back(run(x.slice(1, t, t + 1), state));
  }
  EXPECT_CLOSE("y", torch::cat(steps, 1), y);
  expect_same(state, whole);
}

TEST_P(Contract, NeverLooksAhead) {
  const Tensor x = random({1, 6, kWidth}), y = run(x);
  for (int64_t t = 0; t < 6; ++t) {
    Tensor other = x.clone();
    other.slice(1, t).copy_(random({1, 6 - t, kWidth}));
    const Tensor got = run(other);
    EXPECT_TRUE(torch::equal(got.slice(1, 0, t), y.slice(1, 0, t))) << t;
    EXPECT_FALSE(torch::equal(got.slice(1, t), y.slice(1, t))) << t;
  }
}

TEST_P(Contract, SequencesDoNotMeet) {
  const Tensor x = random({3, 5, kWidth}), y = run(x);
  for (int64_t b = 0; b < 3; ++b)
    EXPECT_CLOSE("one alone", run(x.slice(0, b, b + 1)), y.slice(0, b, b + 1));
}

// Forward-mode derivatives along the input.
TEST_P(Contract, TangentsAreThoseOfTheFunction) {
  // Its derivative is that of another function on purpose.
  if (GetParam().find("straight_through") != std::string::npos) return;
  const Tensor x = random({2, 5, kWidth});
  if (GetParam().rfind("name: attention", 0) == 0) {
    const auto f = [&](const TensorVector& in) { return TensorVector{run(in[0])}; };
    EXPECT_ANY_THROW(tangents_of(f, {x}, {x}));  // torch's attention has none, and says so
    return;
  }
  expect_tangents("input", [&](const TensorVector& in) { return TensorVector{run(in[0])}; }, {x});
}

// Packed, in two pieces so that a state goes in too, against one sequence after the other.
TEST_P(Contract, PackedIsOneByOne) {
  const std::vector<std::vector<int64_t>> lengths = {{1, 4, 7, 2}, {3, 1, 2, 6}};
  State packed;
  std::vector<State> single(4);
  for (const auto& piece : lengths) {
    std::vector<int64_t> bounds = {0};
    for (const int64_t n : piece) bounds.push_back(bounds.back() + n);
    const Tensor x = random({1, bounds.back(), kWidth});
    const Context context{.cu_seqlens = torch::tensor(bounds)};
    State before = packed;
    const Tensor y = run(x, packed, context);
    const Tensor last = run(x, before, at_ends(x, context.cu_seqlens));
    ASSERT_EQ(last.sizes(), torch::IntArrayRef({1, 4, kWidth}));
    expect_same(before, packed);
    for (size_t s = 0; s < 4; ++s) {
      const Tensor want = run(x.slice(1, bounds[s], bounds[s + 1]), single[s]);
      EXPECT_CLOSE(cat("sequence ", s), y.slice(1, bounds[s], bounds[s + 1]), want);
      EXPECT_CLOSE(cat("end of ", s), last.slice(1, int64_t(s), int64_t(s) + 1), want.slice(1, -1));
      for (size_t i = 0; i < packed.size(); ++i) {
        Tensor part = packed[i].slice(0, int64_t(s), int64_t(s) + 1);
        if (mixer_->state_grows()) part = part.slice(1, -single[s][i].size(1));
        EXPECT_CLOSE("state", part, single[s][i]);
      }
    }
  }
}

TEST_P(Contract, TheEndsAreThoseOfTheWhole) {
  for (const int64_t first : {0, 1, 2, 6})
    for (const int64_t T : {1, 3, 5}) {
      State whole;
      if (first > 0) run(random({2, first, kWidth}), whole);
      State state = whole;
      const Tensor x = random({2, T, kWidth});
      const Tensor want = run(x, whole).select(1, -1);
      const Tensor got = run(x, state, at_ends(x));
      ASSERT_EQ(got.sizes(), torch::IntArrayRef({1, 2, kWidth}));
      EXPECT_CLOSE(cat(first, "+", T), got[0], want);
      expect_same(state, whole);
    }
}

TEST_P(Contract, SomeRowsAreThoseOfTheWhole) {
  const Tensor x = random({2, 5, kWidth}), rows = torch::tensor({0, 3, 4, 8});
  State whole, state, packed;
  const Tensor want = run(x, whole).flatten(0, 1).index_select(0, rows);
  const Tensor got = run(x, state, {.read_at = rows});
  ASSERT_EQ(got.sizes(), torch::IntArrayRef({1, 4, kWidth}));
  EXPECT_CLOSE("rows", got[0], want);
  expect_same(state, whole);
  const Tensor end_to_end = run(x.flatten(0, 1).unsqueeze(0), packed,
                                {.cu_seqlens = torch::tensor({0, 5, 10}), .read_at = rows});
  EXPECT_CLOSE("packed", end_to_end[0], want);
  expect_same(packed, whole);
}

TEST_P(Contract, ATableWithTokensIsItsRows) {
  const Tensor table = random({3, kWidth}), token = torch::randint(3, {2, 9}, torch::kInt64);
  const Tensor x = table.index_select(0, token.flatten()).view({2, 9, kWidth});
  for (const Context& context : {Context{}, at_ends(x)}) {
    State state, want_state;
    const Tensor got = mixer_->forward({table, token}, state, context);
    EXPECT_CLOSE("y", got, run(x, want_state, context));
    expect_same(state, want_state);
  }
}

TEST_P(Contract, GradientsReachEveryParameterTheInputAndTheState) {
  State state;
  run(random({2, 4, kWidth}), state);
  for (auto& part : state) part = part.detach().requires_grad_();
  const State before = state;
  const Tensor x = random({2, 3, kWidth}).requires_grad_();
  // From the beginning, too: some parameters are what the first token finds.
  ((run(x, state) + run(x)) * random({2, 3, kWidth})).sum().backward();
  const auto moves = [](const Tensor& w) {
    return w.grad().defined() && w.grad().norm().item<double>() > 0;
  };
  for (const auto& item : mixer_->named_parameters())
    EXPECT_TRUE(moves(item.value())) << item.key();
  EXPECT_TRUE(moves(x));
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].dim() == 1) continue;  // a count
    // A kernel of one looks at the current input only.
    if (before[i].dim() == 3 && before[i].size(2) == 1) continue;
    EXPECT_TRUE(moves(before[i])) << "state " << i;
  }
}

// The gradients of the ways that save work are those of the plain way.
TEST_P(Contract, SavingWorkKeepsTheGradients) {
  const Tensor table = random({3, kWidth}).requires_grad_();
  const Tensor token = torch::randint(3, {1, 9}, torch::kInt64);
  const Context context{.cu_seqlens = torch::tensor({0, 2, 9}), .read_at = torch::tensor({1, 8})};
  const Tensor dy = random({1, 2, kWidth});
  const auto gradients = [&](const Tensor& y) {
    std::vector<Tensor> of = mixer_->parameters();
    of.push_back(table);
    return torch::autograd::grad({y}, of, {dy});
  };
  State state;
  const auto got = gradients(mixer_->forward({table, token}, state, context));
  const Tensor x = table.index_select(0, token.flatten()).unsqueeze(0);
  const auto want = gradients(
      torch::cat({run(x.slice(1, 0, 2)).slice(1, -1), run(x.slice(1, 2)).slice(1, -1)}, 1));
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_CLOSE_TO(cat("gradient ", i), got[i], want[i], 1e-10);  // some nearly cancel
}

TEST_P(Contract, StateSizeIsWhatTheStateHolds) {
  State state;
  run(random({1, 2, kWidth}), state);
  int64_t size = 0;
  for (const auto& part : state) size += part.numel();
  EXPECT_EQ(size, mixer_->state_size() * (mixer_->state_grows() ? 2 : 1));
}

TEST_P(Contract, Bfloat16AutocastIsCloseToFloat32) {
  // On some virtual machines oneDNN's bfloat16 products on AMX tiles are an illegal instruction.
  at::globalContext().setUserEnabledMkldnn(false);
  mixer_->to(torch::kFloat32);
  const Tensor x = random({2, 5, kWidth}).to(torch::kFloat32);
  const Tensor want = run(x);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  for (const bool ends : {false, true}) {
    State state;
    const Tensor y = run(x, state, ends ? at_ends(x) : Context{});
    EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
    EXPECT_EQ(state[0].scalar_type(), torch::kFloat32);
    // Dividing by a sum near zero magnifies the rounding; there only the run itself is checked.
    if (GetParam().find("sum") == std::string::npos) {
      EXPECT_CLOSE_TO("y", y, ends ? want.slice(1, -1).transpose(0, 1) : want, 0.1);
    }
    y.sum().backward();
  }
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::globalContext().setUserEnabledMkldnn(true);
}

TEST_P(Contract, RefusesUnknownFieldsAndReadsItsOwnPrint) {
  const Section at = Section::from_text(GetParam());
  EXPECT_THROW(made(GetParam() + "\nheadz: 2"), Error);
  const YAML::Node resolved = entry_of(at).resolve(at);
  const Section again = Section::from_text(YAML::Dump(resolved));
  EXPECT_TRUE(differences(entry_of(again).resolve(again), resolved).empty());
  EXPECT_EQ(made(YAML::Dump(resolved))->parameters().size(), mixer_->parameters().size());
}

// The names and shapes that mixer.h promises to those who look inside.
TEST_P(Contract, SaysWhatItAppliesToItsState) {
  const bool channels = GetParam().find("gate_per: channel") != std::string::npos;
  const std::map<std::string, int64_t> dimensions = {
      {"k", 5},      {"beta", 4},     {"log_gate", channels ? 4 : 3},
      {"log_w", 4},  {"a", 4},        {"kk", 4},
      {"gate", 4},   {"theta", 3},    {"eta", 3},
      {"alpha", 3},  {"key", 4},      {"forget_gate", 3},
      {"matrix", 4}, {"jacobian", 5}, {"outputs", 4}};
  const std::vector<std::vector<std::string>> enough = {
      {"k", "beta"},        {"key", "theta", "eta", "alpha"},
      {"log_w", "a", "kk"}, {"gate"},
      {"transition"},       {"forget_gate"},
      {"matrix"},           {"jacobian"}};
  const int64_t B = 2, T = 5;
  const Tensor x = random({B, T, kWidth});
  std::map<std::string, Tensor> told;
  State state;
  Context context;
  context.observe = [&](const std::string& name, const Tensor& value) { told[name] = value; };
  const Tensor y = run(x, state, context);
  EXPECT_TRUE(torch::equal(y, run(x))) << "looking changes nothing";
  if (mixer_->state_grows()) return;
  EXPECT_TRUE(std::any_of(enough.begin(), enough.end(), [&](const auto& names) {
    return std::all_of(names.begin(), names.end(),
                       [&](const auto& name) { return told.contains(name); });
  }));
  for (const auto& [name, value] : told) {
    EXPECT_EQ(value.size(0), B) << name;
    EXPECT_EQ(value.size(1), name == "outputs" ? T + 1 : T) << name;
    if (dimensions.contains(name)) {
      EXPECT_EQ(value.dim(), dimensions.at(name)) << name;
    }
    EXPECT_TRUE(value.isfinite().all().item<bool>()) << name;
  }
}

TEST(Skeleton, IsTheOneThatIsShown) {
  const std::string root = LRNN_SOURCE_DIR;
  EXPECT_NE(read_file(root + "/CONTRIBUTING.md")
                .find("```cpp\n" + read_file(root + "/tests/mixers/skeleton.cpp") + "```"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Every, Contract, testing::ValuesIn(configs()), [](const auto& info) {
  std::string name;
  for (const char c : info.param)
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  return cat(info.index, "_", name);
});

}  // namespace
}  // namespace lrnn::mixers
