#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "experiments/files.h"

// Files that TensorBoard reads: records with checksums (TFRecord) around Event messages of protocol
// buffers, of which a curve needs four fields; so they are written by hand.
namespace lrnn::experiments {

// The curves of a run. Every process that works on it writes a file of its own, as TensorBoard
// expects, which begins by taking back what earlier ones wrote of steps that are done again.
class EventFile {
 public:
  // `step`: that of the checkpoint the process goes on from.
  EventFile(const std::string& folder, int64_t step);

  // Whether no process has written here before.
  bool first() const { return first_; }
  // A line of metrics.jsonl: its numbers become train/loss, eval/accuracy and so on.
  void add(const nlohmann::ordered_json& line);

 private:
  std::unique_ptr<AppendFile> file_;
  bool first_ = true;
};

// Length, masked checksum of the length, data, masked checksum of the data.
std::string tf_record(std::string_view data);

// Event messages.
std::string version_event(double wall_time);
std::string restart_event(double wall_time, int64_t step);
std::string scalars_event(double wall_time, int64_t step,
                          const std::vector<std::pair<std::string, float>>& scalars);

}  // namespace lrnn::experiments
