#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/manifest.h"
#include "text/stream.h"

namespace lrnn::text {

// A folder that somebody trains on or tests with. There are two kinds:
//
//   shards   what `lrnn prepare` wrote
//   texts    *.txt and a tokenizer beside them, for a start: they are encoded as they are read, and
//            the last tenth of every text is held out
struct Corpus {
  std::string folder, domain;
  std::string sha256;     // of the manifest; of texts: of the tokenizer and all of them
  std::string tokenizer;  // sha256 of its file
  int64_t vocabulary = 0;
  std::optional<int32_t> bos, eos;
  Stream train, eval;
  std::optional<Manifest> manifest;  // of shards

  // The size of every shard is looked at.
  static Corpus open(const std::string& folder);
  // sha256, ids and indices: the first time on this machine, or `again`. What was checked is noted
  // in the user's cache; a shard that has changed since is checked anew.
  void verify(bool again) const;
};

// What can be said without reading the ids: that of a folder which is there, else nothing.
std::optional<int64_t> vocabulary_of(const std::string& folder);

}  // namespace lrnn::text
