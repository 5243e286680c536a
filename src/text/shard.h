#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// A shard: token ids in llm.c's format. 256 little-endian int32 (a magic number, a version, the
// number of tokens), then uint16 ids, or uint32 ids where the vocabulary has more than 65,536
// pieces. Beside it lies an index without a header: 12 bytes a document, uint64 its first token
// within the shard and uint32 the bytes of its text.
namespace lrnn::text {

struct ShardFormat {
  static constexpr int64_t kHeader = 1024, kEntry = 12;
  // llm.c seeks with an int.
  static constexpr int64_t kMostBytes = (int64_t{1} << 31) - 1;

  bool wide = false;
  static ShardFormat of(int64_t vocabulary) { return {vocabulary > 65536}; }

  int64_t width() const { return wide ? 4 : 2; }
  int64_t bytes(int64_t tokens) const { return kHeader + tokens * width(); }
  int64_t most_tokens() const { return (kMostBytes - kHeader) / width(); }
  std::string header(int64_t tokens) const;
  void append(std::span<const int32_t> ids, std::string& bytes) const;
};

// "train-00000.bin" -> "train-00000.idx"
std::string index_file(const std::string& shard);
std::string index_entry(uint64_t first, uint32_t bytes);

// A shard in memory as the file is on disk. The size must be what its header says.
class Shard {
 public:
  explicit Shard(const std::string& path);
  Shard(Shard&& other) noexcept;
  Shard& operator=(Shard&& other) noexcept;
  ~Shard();

  int64_t tokens() const { return tokens_; }
  const ShardFormat& format() const { return format_; }
  int32_t operator[](int64_t at) const {
    return format_.wide ? int32_t(reinterpret_cast<const uint32_t*>(ids_)[at])
                        : reinterpret_cast<const uint16_t*>(ids_)[at];
  }
  std::string_view bytes() const { return {map_, size_}; }

  struct Entry {
    int64_t first, bytes;
  };
  // The index beside a shard; empty where a foreign shard has none.
  static std::vector<Entry> index(const std::string& path, int64_t tokens);

 private:
  const char* map_ = nullptr;
  size_t size_ = 0;
  ShardFormat format_;
  int64_t tokens_ = 0;
  const char* ids_ = nullptr;
};

}  // namespace lrnn::text
