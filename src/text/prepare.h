#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "text/manifest.h"
#include "text/tokenizer.h"

// A corpus as shards of ids. The same documents give the same bytes whatever the number of threads
// and however often the work was interrupted.
namespace lrnn::text {

struct Prepare {
  std::vector<std::string> files;  // documents for both splits, as `hold_out` says
  std::vector<std::string> eval;   // documents that are held out altogether
  std::string out, field = "text", domain = "text";
  std::string ids;           // the key of a line's ids, where another program made them
  double hold_out = 0.0005;  // the share of documents in the eval split
  uint64_t seed = 2357;      // of the choice of these
  int64_t shard_tokens = 100000000;
  int threads = 1;
  std::optional<int32_t> bos, eos;
};

struct PrepareProgress {
  int64_t documents = 0, tokens = 0, source_bytes = 0;
};

// What was done before is found in the folder and not done again. Returns nothing when `go_on`
// said no; what was done until then is kept.
std::optional<Manifest> prepare(const Prepare& how, const Tokenizer& tokenizer,
                                const std::function<bool(const PrepareProgress&)>& go_on);

}  // namespace lrnn::text
