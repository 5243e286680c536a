#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "training/growth.h"

namespace lrnn::experiments {

// The folder `checkpoints/` of a run: step-00001000/ with its files and a manifest of their sizes
// and checksums. A checkpoint is made under another name and renamed when all of it is on the disk,
// so under its own name it is whole, or it was damaged later, which the manifest shows.
class Checkpoints {
 public:
  explicit Checkpoints(std::string folder) : folder_(std::move(folder)) {}

  // Files by their names, where whoever wrote them knows what is in them.
  using Sums = std::map<std::string, FileSum>;
  // `write` fills an empty folder; files whose sums it does not return are read again for them.
  // Replaces a checkpoint of the same step.
  void save(int64_t step, const std::function<Sums(const std::string& folder)>& write) const;

  std::vector<int64_t> steps() const;  // ascending; whether they are whole is another question
  std::string path(int64_t step) const;

  // "" for a whole checkpoint, else one sentence that names the file and what is wrong with it.
  static std::string damage(const std::string& checkpoint);
  // The newest whole checkpoint, or -1 when there is none at all. Damaged ones that are newer are
  // appended to `damaged` as sentences; when all are damaged that is an Error.
  int64_t newest(std::vector<std::string>* damaged) const;

  // Leaves the last `keep` checkpoints and the best (-1: none).
  void prune(int64_t keep, int64_t best) const;
  // Points `checkpoints/best` at that step; -1 removes it.
  void mark_best(int64_t step) const;
  // After a crash: half-made folders go; checkpoints after `step`, which cannot be whole or they
  // would be in use, are renamed to step-….damaged, out of the way of what is made next.
  void tidy(int64_t step) const;

 private:
  std::string folder_;
};

// The step in a name such as step-00001000, or -1.
int64_t step_of(const std::string& name);

// What a run needs beside weights and moments to go on as if nothing had happened: state.json.
struct RunState {
  int64_t step = 0;     // updates made
  int64_t skipped = 0;  // batches passed over because of a loss or gradient that was not finite
  int64_t metrics_bytes = 0;  // size of metrics.jsonl at this moment
  // Since the last "train" line of metrics.jsonl:
  double loss_sum = 0;
  int64_t updates = 0, right = 0, targets = 0;
  // The best evaluation so far; -1: none yet. With a validation set the step is chosen by it, and
  // the largest accuracy on the test, which may end the run, can be another step's.
  double best_accuracy = -1;
  int64_t best_step = -1;
  std::optional<double> best_validation = {};   // its accuracy at that step
  std::optional<double> best_loss = {};         // of texts, where it decides what is best
  std::optional<training::Growth> growth = {};  // where words grow

  bool operator==(const RunState&) const = default;
};

std::string print(const RunState& state);
RunState read_state(const std::string& file);
RunState parse_state(const std::string& text, const std::string& where);  // `where`: for errors

}  // namespace lrnn::experiments
