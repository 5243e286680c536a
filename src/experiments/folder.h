#pragma once
#include <optional>
#include <string>

#include "experiments/checkpoints.h"
#include "experiments/files.h"
#include "experiments/run.h"
#include "training/config.h"

namespace lrnn::experiments {

// A run folder that this process alone works in:
//
//   config.yaml    the resolved config: running it again is the same run
//   info.json      versions, machine, threads, when it began; of texts the sum of the data
//   tokenizer/     of texts: what turns them into tokens, a copy
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
  Machine settle(const Machine& now, const std::optional<tasks::Material>& data = {}) const;

 private:
  void make() const;
  void check_there(const RunConfig& config, const Begin& begin) const;
  void check_data(const nlohmann::ordered_json& info, const tasks::Material& data) const;
  void keep_tokenizer(const tasks::Material& data) const;

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

// A run that goes on may end elsewhere than it was going to: train.steps and train.stop_at may be
// others then, from the checkpoint on that it goes on from.

// Whether a difference of two configs, such as "train.steps: 100 -> 200", or an assignment, such as
// "train.steps=200", is about the end of a run alone.
bool about_the_end(const std::string& text);

// An Error when the run cannot end as `now` says: it is beyond that step, or train.stop_at has
// ended it and still does.
void check_end(const Checkpoints& checkpoints, const training::TrainConfig& before,
               const training::TrainConfig& now);

// The line of metrics.jsonl for a run that goes on from `step`, where `before` held so far; "" when
// both end alike. {"kind":"extended","step":100,"steps":{"from":100,"to":200}}
std::string change_of_end(int64_t step, const training::TrainConfig& before,
                          const training::TrainConfig& now);

// An Error unless everything in the folder was written by lrnn for a training run: a file of
// somebody else's, a link that leads out of it or a compiled model is not for us to remove. A
// folder that is empty or missing is fine. `needed`, where one is named, must not lie in it.
void check_removable(const std::string& folder, const std::string& needed = {});

// Removes the run in the folder, after that check, and leaves the folder itself. For who holds the
// run's lock.
void remove_run(const std::string& folder);

}  // namespace lrnn::experiments
