#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "text/shard.h"

namespace lrnn::text {

// A document among the ids of a split.
struct DocumentAt {
  int64_t first = 0;   // its first token
  int64_t tokens = 0;  // up to the next document
  int64_t bytes = -1;  // of its text; -1: nobody wrote it down
};

// The ids of a split as one long row: those of its shards end to end, or ids in memory.
class Stream {
 public:
  Stream() = default;
  // Where a shard has no index, a document begins at every `bos`, or after every `eos`.
  Stream(const std::vector<std::string>& shards, std::optional<int32_t> bos,
         std::optional<int32_t> eos);
  Stream(std::vector<int32_t> ids, std::vector<DocumentAt> documents);

  int64_t tokens() const { return tokens_; }
  void copy(int64_t first, int64_t count, int64_t* to) const;

  // In their order. The indices are read when somebody asks for the first time.
  const std::vector<DocumentAt>& documents() const;
  // The number of the document that token is in.
  size_t document_of(int64_t token) const;

 private:
  struct Part {
    std::string path;
    Shard shard;
    int64_t first;  // of its tokens
  };
  struct Documents {
    std::once_flag read;
    std::vector<DocumentAt> list;
  };
  void read_documents(std::vector<DocumentAt>& to) const;
  void read_index(const Part& part, std::vector<DocumentAt>& to) const;

  std::vector<Part> parts_;
  std::vector<int32_t> ids_;
  int64_t tokens_ = 0;
  std::optional<int32_t> bos_, eos_;
  std::shared_ptr<Documents> documents_ = std::make_shared<Documents>();
};

}  // namespace lrnn::text
