#include "experiments/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "base/checksum.h"
#include "base/error.h"
#include "experiments/metrics.h"

namespace lrnn::experiments {

namespace fs = std::filesystem;

namespace {

const std::string kEventPrefix = "events.out.tfevents.";

void put_little_endian(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += char(value >> (8 * i) & 0xFF);
}

uint32_t masked_crc(std::string_view bytes) {
  Crc32c sum;
  sum.add(bytes);
  return std::rotr(sum.value(), 15) + 0xA282EAD8u;
}

// Fields of a protocol buffer: the number of the field and how its value is written, then the
// value.
enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += char(value | 0x80);
  out += char(value);
}
void put_key(std::string& out, int field, Wire wire) {
  put_varint(out, uint64_t(field << 3 | wire));
}
void put_number(std::string& out, int field, int64_t value) {
  put_key(out, field, kVarint);
  put_varint(out, uint64_t(value));
}
void put_double(std::string& out, int field, double value) {
  put_key(out, field, kFixed64);
  put_little_endian(out, std::bit_cast<uint64_t>(value), 8);
}
void put_float(std::string& out, int field, float value) {
  put_key(out, field, kFixed32);
  put_little_endian(out, std::bit_cast<uint32_t>(value), 4);
}
void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// tensorboard/compat/proto/event.proto and summary.proto
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2 };
enum SessionLogField { kStatus = 1 };
constexpr int64_t kStart = 1;  // SessionLog.START

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The time in the name of the newest event file of a folder; 0: there is none. TensorBoard reads
// the files in the order of their names.
int64_t newest_event_file(const std::string& folder) {
  int64_t newest = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kEventPrefix)) continue;
    int64_t time = 0;
    std::from_chars(name.data() + kEventPrefix.size(), name.data() + name.size(), time);
    newest = std::max({newest, time, int64_t(1)});
  }
  return newest;
}

}  // namespace

std::string tf_record(std::string_view data) {
  std::string out;
  put_little_endian(out, data.size(), 8);
  put_little_endian(out, masked_crc(out), 4);
  out += data;
  put_little_endian(out, masked_crc(data), 4);
  return out;
}

std::string version_event(double wall_time) {
  std::string out;
  put_double(out, kWallTime, wall_time);
  put_bytes(out, kFileVersion, "brain.Event:2");
  return out;
}

std::string restart_event(double wall_time, int64_t step) {
  std::string out, log;
  put_number(log, kStatus, kStart);
  put_double(out, kWallTime, wall_time);
  put_number(out, kStep, step);
  put_bytes(out, kSessionLog, log);
  return out;
}

std::string scalars_event(double wall_time, int64_t step,
                          const std::vector<std::pair<std::string, float>>& scalars) {
  std::string out, summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, kTag, tag);
    put_float(value, kSimpleValue, number);
    put_bytes(summary, kValue, value);
  }
  put_double(out, kWallTime, wall_time);
  put_number(out, kStep, step);
  put_bytes(out, kSummary, summary);
  return out;
}

EventFile::EventFile(const std::string& folder, int64_t step) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  check(!failed, "cannot make the folder ", folder, ": ", failed.message());
  const int64_t before = newest_event_file(folder);
  first_ = before == 0;
  char host[256] = "unknown";
  if (::gethostname(host, sizeof host - 1) != 0) std::snprintf(host, sizeof host, "unknown");
  const double now = seconds_now();
  file_ = std::make_unique<AppendFile>(
      fmt::format("{}/{}{:010}.{}.{}", folder, kEventPrefix, std::max(int64_t(now), before + 1),
                  host, ::getpid()),
      0);
  file_->bytes(tf_record(version_event(now)));
  if (!first_) file_->bytes(tf_record(restart_event(now, step + 1)));
}

void EventFile::add(const nlohmann::ordered_json& line) {
  const auto kind = line.value("kind", "");
  if (kind != "train" && kind != "eval") return;
  std::vector<std::pair<std::string, float>> scalars;
  for (const char* key : {"loss", "accuracy", "scaled", "token_accuracy", "lr", "grad_norm"})
    if (line.contains(key)) scalars.emplace_back(kind + "/" + key, float(number_in(line, key)));
  file_->bytes(tf_record(scalars_event(seconds_now(), line.value("step", int64_t(0)), scalars)));
}

}  // namespace lrnn::experiments
