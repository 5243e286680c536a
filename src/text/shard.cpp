#include "text/shard.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"

namespace lrnn::text {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are little-endian");

constexpr int32_t kMagic = 20240520, kVersion = 1;          // uint16 ids
constexpr int32_t kWideMagic = 20240801, kWideVersion = 7;  // uint32 ids

template <class T> T number_at(const char* bytes) {
  T out;
  std::memcpy(&out, bytes, sizeof out);
  return out;
}

}  // namespace

std::string ShardFormat::header(int64_t tokens) const {
  const int32_t words[] = {wide ? kWideMagic : kMagic, wide ? kWideVersion : kVersion,
                           int32_t(tokens)};
  std::string out(kHeader, '\0');
  std::memcpy(out.data(), words, sizeof words);
  return out;
}

void ShardFormat::append(std::span<const int32_t> ids, std::string& bytes) const {
  const size_t before = bytes.size();
  bytes.resize(before + ids.size() * size_t(width()));
  char* to = bytes.data() + before;
  if (wide) {
    std::memcpy(to, ids.data(), ids.size_bytes());
    return;
  }
  for (const int32_t id : ids) {
    const auto narrow = uint16_t(id);
    std::memcpy(to, &narrow, 2);
    to += 2;
  }
}

std::string index_file(const std::string& shard) {
  return std::filesystem::path(shard).replace_extension(".idx").string();
}

std::string index_entry(uint64_t first, uint32_t bytes) {
  std::string out(ShardFormat::kEntry, '\0');
  std::memcpy(out.data(), &first, 8);
  std::memcpy(out.data() + 8, &bytes, 4);
  return out;
}

Shard::Shard(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (file < 0 || ::fstat(file, &info) != 0) {
    const int error = errno;
    if (file >= 0) ::close(file);
    throw Error(cat("cannot read ", path, ": ", std::strerror(error)));
  }
  size_ = size_t(info.st_size);
  void* map = size_ == 0 ? MAP_FAILED : ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  if (int64_t(size_) < ShardFormat::kHeader || map == MAP_FAILED) {
    if (map != MAP_FAILED) ::munmap(map, size_);
    throw Error(cat(path, " is cut short: it has not even a whole header"));
  }
  map_ = static_cast<const char*>(map);
  const auto magic = number_at<int32_t>(map_), version = number_at<int32_t>(map_ + 4);
  tokens_ = number_at<int32_t>(map_ + 8);
  format_.wide = magic == kWideMagic;
  ids_ = map_ + ShardFormat::kHeader;
  std::string wrong;
  if (!(magic == kMagic && version == kVersion) &&
      !(magic == kWideMagic && version == kWideVersion))
    wrong = cat(path, " is no shard of token ids: it begins with ", magic, ", version ", version);
  else if (tokens_ < 0 || format_.bytes(tokens_) != int64_t(size_))
    wrong = cat(path, int64_t(size_) < format_.bytes(tokens_) ? " is cut short: " : " is damaged: ",
                "its header says ", tokens_, " tokens, which are ", format_.bytes(tokens_),
                " bytes, and it has ", size_);
  if (wrong.empty()) return;
  ::munmap(map, size_);
  throw Error(wrong, "prepare it again into an empty folder");
}

Shard::Shard(Shard&& other) noexcept { *this = std::move(other); }
Shard& Shard::operator=(Shard&& other) noexcept {
  std::swap(map_, other.map_);
  std::swap(size_, other.size_);
  std::swap(format_, other.format_);
  std::swap(tokens_, other.tokens_);
  std::swap(ids_, other.ids_);
  return *this;
}
Shard::~Shard() {
  if (map_) ::munmap(const_cast<char*>(map_), size_);
}

std::vector<Shard::Entry> Shard::index(const std::string& path, int64_t tokens) {
  const std::string file = index_file(path);
  if (!std::filesystem::exists(file)) return {};
  const std::string bytes = read_file(file);
  std::vector<Entry> out;
  bool good = bytes.size() % ShardFormat::kEntry == 0;
  for (size_t at = 0; good && at < bytes.size(); at += ShardFormat::kEntry) {
    const auto first = number_at<uint64_t>(bytes.data() + at);
    good = first <= uint64_t(tokens) &&
           (out.empty() ? first == 0 : int64_t(first) >= out.back().first);
    out.push_back({int64_t(first), number_at<uint32_t>(bytes.data() + at + 8)});
  }
  if (!good)
    throw Error(cat(file, " is damaged: it does not fit its shard"),
                "prepare it again into an empty folder");
  return out;
}

}  // namespace lrnn::text
