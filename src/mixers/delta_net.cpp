#include "mixers/delta_product.h"

// The name of the papers and of published configs for one householder.
namespace lrnn::mixers {
namespace {

struct DeltaNetConfig : DeltaProductConfig {
  void check(const Section& at) const {
    DeltaProductConfig::check(at);
    at.require(householders == 1, "householders", "must be 1 for delta_net, got ", householders,
               "; the mixer delta_product takes more");
  }
};

}  // namespace

Entry entry_delta_net(const char* name, const char* about) {
  return entry<DeltaNetConfig>(name, about,
                               [](int64_t width, const DeltaNetConfig& config, const Section&) {
                                 return make_delta_product(width, config);
                               });
}

}  // namespace lrnn::mixers
