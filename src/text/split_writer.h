#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "text/manifest.h"
#include "text/shard.h"

namespace lrnn::text {

// Writes the shards of one split. An open shard lies in files with ".partial" at the end of their
// names; how far they were filled is for the caller to write down (`Open`), who can go on from
// there after a crash.
class SplitWriter {
 public:
  struct Open {
    int64_t number = 0, tokens = 0, documents = 0;  // of the open shard
  };

  SplitWriter(std::string folder, std::string split, ShardFormat format, Open open);
  ~SplitWriter();
  SplitWriter(const SplitWriter&) = delete;
  SplitWriter& operator=(const SplitWriter&) = delete;

  void add(std::span<const int32_t> ids, uint32_t source_bytes);
  void sync();  // what was added is on the disk
  const Open& open() const { return open_; }

  // Ends the open shard: its files are whole, but keep their names until `name_shard`.
  Manifest::Part finish();

 private:
  struct File {
    int fd = -1;
    std::string path, waiting;
    void start(std::string file, int64_t keep);
    void write();
    void sync();
    void close();
  };
  void begin();
  std::string name() const;

  std::string folder_, split_;
  ShardFormat format_;
  Open open_;
  File ids_, index_;
};

// Gives a finished shard its name, if it does not have it yet.
void name_shard(const std::string& folder, const Manifest::Part& part);

}  // namespace lrnn::text
