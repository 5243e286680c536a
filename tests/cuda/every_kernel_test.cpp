#include "ops/block_linear/block_linear.h"
#include "ops/gated_mlp/gated_mlp.h"
#include "ops/linears/linears.h"
#include "ops/norm/norm.h"
#include "ops/short_conv/short_conv.h"
#include "ops/swiglu/swiglu.h"
#include "ops/take/take.h"
#include "ops/unit_conv/unit_conv.h"
#include "tests/cuda/recurrence_cuda.h"
#include "tests/ops/delta_product_cases.h"
#include "tests/ops/diagonal_cases.h"
#include "tests/ops/mlstm_cases.h"
#include "tests/ops/selective_scan_cases.h"
#include "tests/ops/slstm_cases.h"
#include "tests/training/small.h"
#include "training/trainer.h"

// Every kernel once, on problems as small as its tiles allow and that do not fill them: what `make
// gpu-check` runs under the sanitizers, which slow kernels down a hundredfold. Results are held
// against the CPU's; the tests of each op ask more.
namespace lrnn::recurrence {
namespace {

struct EveryKernelOnGpu : OnGpu {};

const std::vector<torch::Dtype> kTypes = {torch::kFloat64, torch::kFloat32, torch::kBFloat16};

void expect_cpu(const Function& op, const Tensors& in, double limit) {
  const Tensors want = everything(in, op), got = everything(in, on_gpu(op));
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, x] : want)
    EXPECT_CLOSE_TO(name, got.at(name), x, 2 * limit);  // both round
}

Tensors delta_product_problem(const Case& c) {
  const auto in = make_inputs(c);
  Tensors out = {{"k", in.k}, {"v", in.v}, {"beta", in.beta / 2}};  // no digits lost to beta > 1
  for (const auto& [name, x] : {std::pair{"q", in.q}, std::pair{"log_gate", in.log_gate},
                                std::pair{"state", in.state}, std::pair{"cu", in.cu_seqlens}})
    if (x.defined()) out[name] = x;
  return out;
}

Function delta_product_in(const std::string& precision) {
  return [precision](const Tensors& x) -> Tensors {
    ops::DeltaProduct in;
    in.q = get(x, "q"), in.k = get(x, "k"), in.v = get(x, "v"), in.beta = get(x, "beta");
    in.log_gate = get(x, "log_gate"), in.state = get(x, "state"), in.cu_seqlens = get(x, "cu");
    in.accuracy = precision;
    const auto out = ops::delta_product(in);
    return out.o.defined() ? Tensors{{"o", out.o}, {"final", out.state}}
                           : Tensors{{"final", out.state}};
  };
}

void expect_delta_product(Case c, const std::vector<std::string>& precisions) {
  for (const bool gate : {false, true})
    for (const auto& precision : precisions) {
      c.gate = gate;
      SCOPED_TRACE(testing::Message() << c << " " << precision);
      expect_cpu(delta_product_in(precision), delta_product_problem(c),
                 precision == "exact" ? tolerance(c.dtype) : 2e-2);
    }
}

TEST_F(EveryKernelOnGpu, ExactDeltaProduct) {
  for (const auto dtype : kTypes)
    for (const int64_t K : {33, 72, 130})  // a thread, two and more hold a column
      expect_delta_product({.B = 1, .T = 5, .N = 2, .H = 1, .K = K, .V = 9, .dtype = dtype},
                           {"exact"});
  expect_delta_product(
      {.B = 1, .T = 20, .H = 1, .K = 40, .V = 9, .dtype = torch::kFloat32, .lengths = {3, 0, 17}},
      {"exact"});
}

TEST_F(EveryKernelOnGpu, DeltaProductOfSmallHeads) {
  for (const auto dtype : {torch::kFloat32, torch::kBFloat16})
    for (const int64_t N : {1, 2})
      expect_delta_product({.B = 2, .T = 19, .N = N, .H = 2, .K = 16, .V = 32, .dtype = dtype},
                           {"exact"});
  // As many as there are schedulers on the chip: choose.h has a kernel for that.
  for (const int64_t N : {1, 2})
    expect_delta_product(
        {.B = 128, .T = 18, .N = N, .H = 4, .K = 32, .V = 16, .dtype = torch::kBFloat16},
        {"accurate"});
}

TEST_F(EveryKernelOnGpu, DeltaProductOfOneChunk) {
  for (const int64_t N : {1, 2})
    expect_cpu(delta_product_in("accurate"),
               delta_product_problem({.B = 1,
                                      .T = 37,
                                      .N = N,
                                      .H = 2,
                                      .K = 48,
                                      .V = 112,
                                      .state = false,
                                      .dtype = torch::kBFloat16}),
               2e-2);
}

TEST_F(EveryKernelOnGpu, DeltaProductInChunks) {
  for (const Case& c : std::vector<Case>{{.N = 1, .K = 32, .V = 48},
                                         {.N = 2, .K = 64, .V = 16},
                                         {.N = 1, .K = 128, .V = 80},
                                         {.N = 3, .K = 256, .V = 64}})
    expect_delta_product({.B = 1,
                          .T = 70 / c.N + 1,
                          .N = c.N,
                          .H = 1,
                          .K = c.K,
                          .V = c.V,
                          .dtype = torch::kBFloat16},
                         {"fast", "accurate"});
  expect_delta_product({.B = 1,
                        .T = 140,
                        .H = 1,
                        .K = 128,
                        .V = 32,
                        .q = false,
                        .dtype = torch::kBFloat16,
                        .lengths = {70, 0, 70}},
                       {"fast", "accurate"});
}

TEST_F(EveryKernelOnGpu, DeltaProductOnWarpGroups) {
  for (const int64_t N : {1, 2})
    for (const int64_t K : {64, 128})
      for (const int64_t V : {64, 128})
        expect_delta_product(
            {.B = 1, .T = 70 / N + 1, .N = N, .H = 1, .K = K, .V = V, .dtype = torch::kBFloat16},
            {"fast", "accurate"});
}

TEST_F(EveryKernelOnGpu, DeltaProductInSegments) {
  for (const int64_t N : {1, 2})  // 25 chunks make three segments (choose.h)
    expect_delta_product(
        {.B = 1, .T = 1600 / N, .N = N, .H = 1, .K = 64 * N, .V = 64, .dtype = torch::kBFloat16},
        {"fast", "accurate"});
}

TEST_F(EveryKernelOnGpu, ShortConv) {
  for (const auto& [W, D] : {std::pair<int64_t, int64_t>{4, 131}, {9, 131}, {4, 128}})
    for (const auto dtype : kTypes) {  // 9: more than a thread keeps in registers
      torch::manual_seed(1);
      const auto normal = [&](std::vector<int64_t> sizes) {
        return torch::randn(sizes, torch::kFloat64).to(dtype);
      };
      expect_cpu(
          [](const Tensors& x) -> Tensors {
            const auto out = ops::short_conv({.x = get(x, "x"),
                                              .weight = get(x, "weight"),
                                              .bias = get(x, "bias"),
                                              .state = get(x, "state"),
                                              .silu = true,
                                              .cu_seqlens = {}});
            return {{"y", out.y}, {"final", out.state}};
          },
          {{"x", normal({2, 11, D})},
           {"weight", normal({D, 1, W})},
           {"bias", normal({D})},
           {"state", normal({2, D, W})}},
          tolerance(dtype));
    }
}

TEST_F(EveryKernelOnGpu, ConvolutionThatMakesUnits) {
  for (const int64_t group : {16, 32, 128})
    for (const auto dtype : kTypes) {
      torch::manual_seed(1);
      const int64_t D = 2 * group + 12;
      expect_cpu(
          [group](const Tensors& x) -> Tensors {
            const auto out = ops::unit_conv({.x = get(x, "x"),
                                             .weight = get(x, "weight"),
                                             .state = {},
                                             .sizes = {group, group, 12},
                                             .units = 2 * group,
                                             .group = group,
                                             .eps = 1e-3});
            return {{"q", out.y[0]}, {"k", out.y[1]}, {"v", out.y[2]}, {"final", out.state}};
          },
          {{"x", torch::randn({2, 11, D}, torch::kFloat64).to(dtype)},
           {"weight", torch::randn({D, 1, 4}, torch::kFloat64).to(dtype)}},
          tolerance(dtype));
    }
}

TEST_F(EveryKernelOnGpu, SelectiveScan) {
  for (const auto dtype : kTypes)
    for (const int64_t N : {5, 16, 40})  // fewer than, as many as and more than two threads hold
      for (const bool negative : {false, true}) {
        const auto in =
            make_scan({.B = 1, .T = 37, .D = 136, .N = N, .negative = negative, .dtype = dtype});
        Tensors named = {
            {"u", in.u},        {"delta", in.delta}, {"A", in.A}, {"B", in.B},
            {"C", in.C},        {"D", in.D},         {"z", in.z}, {"bias", in.delta_bias},
            {"state", in.state}};
        if (!negative) named.erase("z");  // a kernel of its own
        expect_cpu(
            [negative](const Tensors& x) -> Tensors {
              ops::SelectiveScan s;
              s.u = get(x, "u"), s.delta = get(x, "delta"), s.A = get(x, "A"), s.B = get(x, "B");
              s.C = get(x, "C"), s.D = get(x, "D"), s.z = get(x, "z");
              s.delta_bias = get(x, "bias"), s.state = get(x, "state"), s.negative = negative;
              const auto out = ops::selective_scan(s);
              return {{"y", out.y}, {"final", out.state}};
            },
            named, tolerance(dtype));
      }
}

TEST_F(EveryKernelOnGpu, GatedLinearAttentionAndRwkv7) {
  for (const auto dtype : kTypes)
    for (const bool rwkv7 : {false, true})
      for (const int64_t K : {10, 20, 64, 90, 130}) {  // 64 x 64 for kernels that want whole tiles
        const DiagonalCase c{.rwkv7 = rwkv7,
                             .B = 1,
                             .T = K == 64 || K == 90 ? 70 : 20,
                             .H = 1,
                             .K = K,
                             .V = K == 64 ? 64 : 70,
                             .dtype = dtype};
        SCOPED_TRACE(testing::Message() << c);
        expect_cpu(
            [c](const Tensors& x) -> Tensors {
              const auto [o, state] = run_diagonal(c, x);
              return {{"o", o}, {"final", state}};
            },
            diagonal_inputs(c), tolerance(dtype));
      }
}

TEST_F(EveryKernelOnGpu, CellsOfXlstm) {
  for (const auto dtype : kTypes) {
    for (const SlstmCase& c :
         {SlstmCase{.B = 1, .T = 6, .H = 1, .D = 37}, SlstmCase{.B = 133, .T = 2, .H = 4, .D = 5}})
      expect_cpu(kSlstm.kernel, slstm_problem(c, dtype), tolerance(dtype));
    for (const MlstmCase& c : {MlstmCase{.B = 1, .T = 33, .H = 2, .K = 20, .V = 18},
                               MlstmCase{.B = 1, .T = 70, .H = 1, .K = 64, .V = 64}})
      expect_cpu(kMlstm.kernel, mlstm_problem(c, dtype), 10 * tolerance(dtype));
  }
}

TEST_F(EveryKernelOnGpu, SmallBlocks) {
  for (const auto dtype : kTypes) {
    torch::manual_seed(1);
    expect_cpu(
        [](const Tensors& x) -> Tensors {
          return {{"y", ops::block_linear(get(x, "x"), get(x, "weight"))}};
        },
        {{"x", torch::randn({70, 12}, torch::kFloat64).to(dtype)},
         {"weight", torch::randn({3, 4, 4}, torch::kFloat64).to(dtype)}},
        tolerance(dtype));
  }
}

TEST_F(EveryKernelOnGpu, MatricesOfFewRows) {
  for (const auto dtype : kTypes)
    for (const int64_t n : {2, 3, 7}) {
      torch::manual_seed(1);
      expect_cpu(
          [](const Tensors& x) -> Tensors {
            return {{"y", ops::linear(get(x, "x"), get(x, "weight"))}};
          },
          {{"x", torch::randn({77, 40}, torch::kFloat64).to(dtype)},
           {"weight", torch::randn({n, 40}, torch::kFloat64).to(dtype)}},
          tolerance(dtype));
    }
}

// Of as many rows as it takes to be one kernel, and a few more.
TEST_F(EveryKernelOnGpu, GatedMlp) {
  for (const int64_t D : {64, 128}) {
    torch::manual_seed(1);
    const auto normal = [](std::vector<int64_t> sizes, double by) {
      return (by * torch::randn(sizes, torch::kFloat64)).to(torch::kBFloat16);
    };
    expect_cpu(
        [](const Tensors& x) -> Tensors {
          return {{"y", ops::gated_mlp(get(x, "x"), get(x, "gate"), get(x, "up"), get(x, "down"))}};
        },
        {{"x", normal({4100, D}, 1)},
         {"gate", normal({128, D}, 0.1)},
         {"up", normal({128, D}, 0.1)},
         {"down", normal({D, 128}, 0.1)}},
        tolerance(torch::kBFloat16));
  }
}

TEST_F(EveryKernelOnGpu, RowsAndTables) {
  for (const auto dtype : kTypes)
    for (const int64_t D : {5, 136}) {
      torch::manual_seed(1);
      const auto normal = [&](std::vector<int64_t> sizes) {
        return torch::randn(sizes, torch::kFloat64).to(dtype);
      };
      expect_cpu(
          [](const Tensors& x) -> Tensors {
            return {{"rms", ops::rms_norm(get(x, "x"), get(x, "weight"), 0.1)},
                    {"l2", ops::l2_norm(get(x, "x"), 0.1)},
                    {"swiglu", ops::swiglu(get(x, "x"), get(x, "up"))}};
          },
          {{"x", normal({70, D})}, {"weight", normal({D})}, {"up", normal({70, D})}},
          tolerance(dtype));
      for (const int64_t rows : {5, 70})  // few are summed in place, many are sorted first
        expect_cpu(
            [](const Tensors& x) -> Tensors {
              return {{"rows", ops::take({get(x, "table")}, get(x, "index"))[0]}};
            },
            {{"table", normal({rows, D})},
             {"index", torch::randint(-1, rows, {90}, torch::kInt64)}},
            tolerance(dtype));
    }
}

// Kernel by kernel, not as a recording: the sanitizers then see each tensor in memory of its own.
TEST_F(EveryKernelOnGpu, AnUpdateOfTheTrainer) {
  for (const char* precision : {"float32", "bfloat16"}) {
    Small small({std::string("train.precision=") + precision, "train.clip=1.0"});
    const auto stream = ops::gpu()->own_stream();
    small.model->to(torch::kCUDA);
    training::Trainer trainer(*small.model, *small.task, small.config.train, 1, false);
    for (int64_t step = 0; step < 2; ++step) {
      const auto update = trainer.update(step, step);
      EXPECT_TRUE(std::isfinite(update.loss)) << update.loss;
      EXPECT_FALSE(update.skipped);
    }
  }
}

}  // namespace
}  // namespace lrnn::recurrence
