#include "tests/close.h"
#include "tests/cuda/device.h"
#include "tests/ops/selective_scan_cases.h"

// The GPU's selective scan against the definition, in outputs and every gradient.
namespace lrnn {
namespace {

using torch::Tensor;
struct SelectiveScanOnGpu : OnGpu {};

ops::SelectiveScan scan_moved(ops::SelectiveScan in) {
  for (auto& [name, x] : scan_tensors(in))
    if (x->defined()) *x = x->to(torch::kCUDA);
  if (in.cu_seqlens.defined()) in.cu_seqlens = in.cu_seqlens.to(torch::kCUDA);
  return in;
}

ops::SelectiveScanResult scan_on_gpu(const ops::SelectiveScan& in) {
  auto out = ops::selective_scan(scan_moved(in));
  if (out.y.defined()) out.y = out.y.cpu();
  out.state = out.state.cpu();
  return out;
}

void expect_scan(const ops::SelectiveScan& in, double limit) {
  const auto want = scan_everything(scan_in_double(in), ops::selective_scan_definition);
  const auto got = scan_everything(in, scan_on_gpu), again = scan_everything(in, scan_on_gpu);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_CLOSE_TO(got[i].first, got[i].second, want[i].second, limit);
    EXPECT_TRUE(torch::equal(got[i].second, again[i].second)) << got[i].first;
  }
}

// More channels than a block has, more states than two threads have, channels that fill no pack.
const std::vector<ScanCase> kGpuScanCases = {
    {.B = 2, .T = 50, .D = 130, .N = 16, .negative = true},
    {.B = 1, .T = 35, .D = 136, .N = 16, .state = false},
    {.B = 1, .T = 20, .D = 9, .N = 70, .negative = true},
    {.B = 1, .T = 8, .D = 64, .N = 128},
};

TEST_F(SelectiveScanOnGpu, EqualsTheDefinition) {
  for (const auto dtype : {torch::kFloat64, torch::kFloat32, torch::kBFloat16})
    for (const auto* cases : {&kScanCases, &kGpuScanCases})
      for (ScanCase c : *cases) {
        c.dtype = dtype;
        SCOPED_TRACE(testing::Message() << c << " " << dtype);
        expect_scan(make_scan(c), tolerance(dtype));
      }
}

TEST_F(SelectiveScanOnGpu, TheStateNeverPassesThroughBFloat16) {
  const auto in = make_scan({.T = 80, .D = 20, .negative = true, .dtype = torch::kBFloat16});
  EXPECT_CLOSE("state", scan_on_gpu(in).state,
               ops::selective_scan_definition(scan_in_double(in)).state);
}

TEST_F(SelectiveScanOnGpu, ExtremeSteps) {
  for (const bool negative : {false, true}) {
    auto in = make_scan({.T = 70, .D = 18, .negative = negative});
    in.delta.select(1, 10).fill_(500), in.delta.select(1, 11).fill_(21);
    in.delta.select(1, 40).fill_(-800), in.delta.select(1, 64).fill_(19);
    SCOPED_TRACE(negative);
    expect_scan(in, 1e-11);
  }
}

TEST_F(SelectiveScanOnGpu, PiecesEqualTheWholeToTheBit) {
  expect_pieces_to_be_the_whole(
      make_scan({.T = 70, .D = 21, .N = 6, .negative = true, .dtype = torch::kFloat32}),
      scan_on_gpu);
}

TEST_F(SelectiveScanOnGpu, NoTokensReturnTheState) {
  const auto in = make_scan({.B = 3, .T = 0});
  EXPECT_TRUE(torch::equal(scan_on_gpu(in).state, in.state));
  expect_scan(in, 0);
}

TEST_F(SelectiveScanOnGpu, NonContiguousInputs) {
  const auto in = make_scan({.T = 40, .D = 20, .N = 6, .dtype = torch::kFloat32});
  auto strided = scan_moved(in);
  const Tensor both = torch::cat({strided.B, strided.C}, -1);
  strided.B = both.narrow(-1, 0, 6), strided.C = both.narrow(-1, 6, 6);
  strided.u = strided.u.transpose(0, 1).contiguous().transpose(0, 1);
  strided.z = torch::cat({strided.u, strided.z}, -1).narrow(-1, 20, 20);
  strided.delta = torch::stack({strided.delta, strided.delta}, -1).select(-1, 1);
  const auto want = scan_on_gpu(in), got = ops::selective_scan(strided);
  EXPECT_TRUE(torch::equal(got.y.cpu(), want.y));
  EXPECT_TRUE(torch::equal(got.state.cpu(), want.state));
}

TEST_F(SelectiveScanOnGpu, CountsModuloTwoForever) {
  const auto [in, want] = parity_forever();
  EXPECT_TRUE(torch::equal(scan_on_gpu(in).y, want));
}

}  // namespace
}  // namespace lrnn
