#include "mixers/delta_product.h"

// The name of the papers and of published configs for one householder.
namespace lrnn::mixers {
namespace {

struct DeltaNetConfig : DeltaProductConfig {
  void check(const Section& at) const {
    at.require(householders == 1, "householders", "must be 1 for delta_net, got ", householders,
               "; the mixer delta_product takes more");
  }
};

}  // namespace

MixerPtr make_delta_net(int64_t width, const Section& at) {
  return make_delta_product(width, load<DeltaNetConfig>(at, {"name"}));
}

YAML::Node resolve_delta_net(const Section& at) { return save(load<DeltaNetConfig>(at, {"name"})); }

std::vector<Key> keys_delta_net() { return keys<DeltaNetConfig>(); }

}  // namespace lrnn::mixers
