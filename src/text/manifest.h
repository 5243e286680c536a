#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// manifest.json of a folder with shards: what they hold and where it came from. No times and no
// paths, so that the same corpus gives the same bytes.
namespace lrnn::text {

struct Manifest {
  struct Part {
    std::string file, split;  // "train-00000.bin", "train" or "eval"
    int64_t tokens = 0;
    std::string sha256;
  };

  std::string tokenizer;  // sha256 of its file
  int64_t vocabulary = 0;
  // A document begins with `bos`; where there is none but an `eos`, it ends with that.
  std::optional<int32_t> bos, eos;
  std::string domain;
  int64_t tokens = 0, documents = 0, source_bytes = 0;
  std::vector<Part> shards;

  std::string json() const;
  // Of a folder; checks that every shard is there with the size that it should have.
  static Manifest open(const std::string& folder);
};

// The size of every shard; with `whole` also sha256, every id and every index. The first that is
// wrong is an Error that names it.
void check_shards(const std::string& folder, const Manifest& manifest, bool whole);

}  // namespace lrnn::text
