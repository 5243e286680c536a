#include "training/flops.h"

#include "base/error.h"

namespace lrnn::training {
namespace {

constexpr double kPerWeight = 6;           // a multiply-add in forward, two in backward
constexpr double kPerStateNumber = 18;     // three multiply-adds in forward, six in backward
constexpr double kChunk = 64;              // steps
constexpr double kHopperProduct = 790e12;  // H200, bfloat16, n = 8192: results/gpu

// Weights that are read by products: matrices, but no convolution ([C,1,W]), and not what sets the
// pace of a state, which weight decay leaves alone.
double product_weights(const model::Model& model) {
  double count = 0;
  for (const auto& item : model.named_parameters()) {
    const auto& w = item.value();
    const bool table = item.key() == "model.embeddings.weight";
    if (table ? !model.config().tied
              : w.dim() < 2 || (w.dim() == 3 && w.size(1) == 1) || !model.decays(item.key()))
      continue;
    count += double(w.numel());
  }
  return count;
}

// N steps a token over heads of K keys and V values, in token-aligned chunks of C steps: forward,
// and backward with the states computed again.
double delta_product_flops(double H, double N, double K, double V) {
  const double C = kChunk;
  const double forward =
      N * (4 * K * V + 2 * C * K + 2 * C * V + C * C / 2) + 2 * K * V + 2 * C * (K + V);
  const double backward =
      N * (12 * K * V + 6 * C * K + 6 * C * V) + 4 * K * V + 6 * C * K + 4 * C * V;
  return H * (forward + backward);
}

double mixer_flops(const model::Model& model, int64_t block, int64_t length) {
  const auto& mixer = model.mixer(block);
  const auto settings = mixers::resolve(model.config().mixer_of(block));
  const auto name = settings["name"].as<std::string>();
  if (name == "delta_product" || name == "delta_net") {
    const auto number = [&](const char* key, double otherwise) {
      return settings[key].IsDefined() ? settings[key].as<double>() : otherwise;
    };
    const double K = number("key_dim", 0), V = number("value_dim", 0);
    return delta_product_flops(number("heads", 1), number("householders", 1), K, V > 0 ? V : K);
  }
  if (mixer.state_grows())
    return kPerWeight * double(length) * double(mixer.state_size()) / 2;  // keys and values
  return kPerStateNumber * double(mixer.state_size());
}

}  // namespace

double flops_per_token(const model::Model& model, int64_t length) {
  double out = kPerWeight * product_weights(model);
  for (int64_t i = 0; i < model.config().layers; ++i) out += mixer_flops(model, i, length);
  return out;
}

std::optional<double> product_flops(const std::string& device) {
  for (const char* name : {"H200", "H100"})
    if (device.find(name) != std::string::npos) return kHopperProduct;
  return {};
}

}  // namespace lrnn::training
