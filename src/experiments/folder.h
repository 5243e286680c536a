#pragma once
#include <optional>
#include <string>

#include "experiments/checkpoints.h"
#include "experiments/file_lock.h"
#include "experiments/run.h"

namespace lrnn::experiments {

// A run folder that this process alone works in:
//
//   config.yaml    the resolved config: running it again is the same run
//   info.json      versions, machine, threads, when it began
//   metrics.jsonl  loss and accuracy by step; no times, so that it can be compared byte by byte
//   timing.jsonl   when, and how fast
//   checkpoints/   see Checkpoints
//   result.json    once the run is finished
class Folder {
 public:
  // As in TrainOptions.
  struct Begin {
    bool resume = false, extend = false, overwrite = false;
  };
  // Creates the folder, goes on in it or makes room in it. Errors: another process is at work in
  // it; it holds a run and neither was asked for; it holds a run with another config; there is more
  // in it than a run that could be removed.
  Folder(const std::string& path, const RunConfig& config, const Begin& begin);

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const Checkpoints& checkpoints() const { return checkpoints_; }
  bool existed() const { return existed_; }

  // What a run was started with, so that a resumed one gives the same bits: on the first call ever
  // it is what is passed, and later what was written down then.
  struct Machine {
    int64_t threads = 1;
    std::string device = "cpu", gpu = {};  // gpu: its name
  };
  Machine settle(const Machine& now) const;

 private:
  void make() const;
  void check_there(const RunConfig& config, const Begin& begin) const;

  std::string path_;
  Checkpoints checkpoints_;
  bool existed_ = false;
  std::optional<FileLock> lock_;
};

// The config as text, with every key.
std::string print_config(const RunConfig& config);
// What is not in a run's config.yaml as it is given now; a key that an earlier version did not know
// has its default there.
std::vector<std::string> changes(const std::string& config_file, const RunConfig& now);
// An Error when there are changes that matter: some keys change neither weights nor metrics, and
// with `extend` those may differ that say when a run ends.
void require_same(const std::string& config_file, const RunConfig& now, bool extend);

}  // namespace lrnn::experiments
