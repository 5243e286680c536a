#include "text/split_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/sha256.h"

namespace lrnn::text {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBuffer = size_t{4} << 20;

[[noreturn]] void fail(const std::string& path) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  throw Error(cat("cannot write ", path, ": ", full ? "the disk is full" : std::strerror(errno)),
              "what was prepared so far is kept; the same command goes on");
}

void write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path);
    bytes.remove_prefix(size_t(n));
  }
}

}  // namespace

// Keeps the first bytes of what is there, and goes on behind them.
void SplitWriter::File::start(std::string file, int64_t keep) {
  path = std::move(file);
  fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) fail(path);
  if (::lseek(fd, 0, SEEK_END) < keep)
    throw Error(cat(path, " is cut short: it was longer when this was interrupted"),
                "prepare it again into an empty folder");
  if (::ftruncate(fd, keep) != 0 || ::lseek(fd, keep, SEEK_SET) < 0) fail(path);
}
void SplitWriter::File::write() {
  write_all(fd, waiting, path);
  waiting.clear();
}
void SplitWriter::File::sync() {
  write();
  if (::fsync(fd) != 0) fail(path);
}
void SplitWriter::File::close() {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

SplitWriter::SplitWriter(std::string folder, std::string split, ShardFormat format, Open open)
    : folder_(std::move(folder)), split_(std::move(split)), format_(format), open_(open) {
  if (open_.documents > 0) begin();
}
SplitWriter::~SplitWriter() {
  ids_.close();
  index_.close();
}

std::string SplitWriter::name() const { return fmt::format("{}-{:05}.bin", split_, open_.number); }

void SplitWriter::begin() {
  const std::string path = folder_ + "/" + name();
  const bool fresh = open_.documents == 0;
  ids_.start(path + ".partial", fresh ? 0 : format_.bytes(open_.tokens));
  index_.start(index_file(path) + ".partial", open_.documents * ShardFormat::kEntry);
  if (fresh) ids_.waiting = std::string(ShardFormat::kHeader, '\0');  // filled in at the end
}

void SplitWriter::add(std::span<const int32_t> ids, uint32_t source_bytes) {
  if (ids_.fd < 0) begin();
  index_.waiting += index_entry(uint64_t(open_.tokens), source_bytes);
  format_.append(ids, ids_.waiting);
  open_.tokens += int64_t(ids.size());
  ++open_.documents;
  if (ids_.waiting.size() > kBuffer) ids_.write();
  if (index_.waiting.size() > kBuffer) index_.write();
}

void SplitWriter::sync() {
  if (ids_.fd < 0) return;
  ids_.sync();
  index_.sync();
}

Manifest::Part SplitWriter::finish() {
  ids_.write();
  if (::lseek(ids_.fd, 0, SEEK_SET) != 0) fail(ids_.path);
  write_all(ids_.fd, format_.header(open_.tokens), ids_.path);
  sync();
  const Manifest::Part out{name(), split_, open_.tokens, sha256_of_file(ids_.path)};
  ids_.close();
  index_.close();
  open_ = {.number = open_.number + 1};
  return out;
}

void name_shard(const std::string& folder, const Manifest::Part& part) {
  const std::string path = folder + "/" + part.file;
  for (const auto& file : {index_file(path), path}) {
    std::error_code failed;
    if (fs::exists(file + ".partial")) fs::rename(file + ".partial", file, failed);
    if (failed) throw Error(cat("cannot write ", file, ": ", failed.message()));
  }
}

}  // namespace lrnn::text
