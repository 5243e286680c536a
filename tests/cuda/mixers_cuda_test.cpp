#include "base/error.h"
#include "mixers/mixer.h"
#include "tests/close.h"
#include "tests/cuda/device.h"

// Layers made of the GPU's ops are the CPU's layers: outputs, states and gradients.
namespace lrnn::mixers {
namespace {

struct MixersOnGpu : OnGpu {};

constexpr int64_t kWidth = 12;

struct Ran {
  std::vector<std::pair<std::string, Tensor>> tensors;
};

// The mixer with its weights on `device`, on a table with tokens, from no state and then from one.
Ran run_mixer(const std::string& config, const torch::Device& device, const Tensor& read_at) {
  torch::manual_seed(3);
  auto mixer = make(kWidth, Section::from_text(config));
  mixer->initialise({.scheme = "chomsky", .gain = 1, .std = 0.02, .seed = 5});
  mixer->to(torch::kFloat64);
  {
    const torch::NoGradGuard no_grad;  // some weights begin at zero
    for (auto& w : mixer->parameters()) w.add_(0.3 * torch::randn_like(w));
  }
  const Tensor table = torch::randn({5, kWidth}, torch::kFloat64).to(device).requires_grad_(),
               token = torch::randint(5, {2, 9}, torch::kInt64).to(device);
  mixer->to(device);
  State state;
  Ran out;
  Tensor loss = torch::zeros({}, torch::kFloat64);
  for (int i = 0; i < 2; ++i) {
    const Tensor y = mixer->forward({table, token}, state,
                                    {.read_at = read_at.defined() ? read_at.to(device) : read_at});
    loss = loss + (y.cpu() * torch::randn(y.sizes(), torch::kFloat64)).sum();
    out.tensors.emplace_back(cat("y ", i), y.detach());
  }
  for (size_t i = 0; i < state.size(); ++i)
    out.tensors.emplace_back(cat("state ", i), state[i].detach());
  loss.backward();
  out.tensors.emplace_back("dtable", table.grad());
  for (const auto& item : mixer->named_parameters())
    if (item.value().grad().defined())
      out.tensors.emplace_back(cat("d", item.key()), item.value().grad());
  return out;
}

TEST_F(MixersOnGpu, AreTheCpus) {
  for (const std::string name :
       {"delta_net", "delta_product", "delta_product\nforget_gate: true\ngate_per: channel",
        "mamba", "gla", "slstm", "mlstm", "titans", "ttt"})
    for (const Tensor& rows : {Tensor(), torch::tensor({8, 17}), torch::tensor({3, 9, 10})}) {
      SCOPED_TRACE(cat(name, " at ", rows));
      const std::string config = cat("name: ", name);
      const Ran want = run_mixer(config, torch::kCPU, rows),
                got = run_mixer(config, torch::kCUDA, rows);
      ASSERT_EQ(got.tensors.size(), want.tensors.size());
      for (size_t i = 0; i < want.tensors.size(); ++i) {
        EXPECT_EQ(got.tensors[i].first, want.tensors[i].first);
        EXPECT_CLOSE_TO(want.tensors[i].first, got.tensors[i].second, want.tensors[i].second, 1e-9);
      }
    }
}

}  // namespace
}  // namespace lrnn::mixers
