#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/import.h"
#include "model/model.h"
#include "tasks/task.h"
#include "training/config.h"
#include "training/estimate.h"
#include "training/evaluate.h"
#include "training/ranks.h"

namespace lrnn::experiments {

// One experiment: what `lrnn train CONFIG.yaml key=value …` reads.
struct RunConfig {
  int64_t seed = 42;
  Section task;
  model::ModelConfig model;
  training::TrainConfig train;

  template <class Visit> void fields(Visit&& visit) {
    visit("seed", seed, "of the initial weights and of the data", at_least(0));
    visit("task", task, "{name, train: {length}, eval: {length, samples}, …}: see `lrnn tasks`");
    visit("model", model, "the network");
    visit("train", train, "how it is trained");
  }
};

RunConfig read_config(const std::string& file, const std::vector<std::string>& overrides);
// Every key with its value, the mixer's and the task's own included.
YAML::Node resolve(const RunConfig& config);
// The model with its initial weights: a pure function of the config.
model::ModelPtr build(const RunConfig& config, const tasks::Task& task);

// A finished or unfinished run, read from its folder (or from one checkpoint inside it).
struct Run {
  std::string folder;
  RunConfig config;
  tasks::TaskPtr task;
  model::ModelPtr model;  // with the weights of the last checkpoint
  int64_t step = 0;
  // Newer checkpoints that were passed over, each as a sentence that names the file.
  std::vector<std::string> damaged;
  std::optional<model::Origin> origin;  // of a model that came from elsewhere
};
Run open(const std::string& folder);

// ------------------------------------------------------------------------------------- training

// How fast a language model is trained.
struct Speed {
  double tokens_per_second = 0;
  double flops = 0;  // a second, as training/flops.h counts them
  double mfu = -1;   // of what a large bfloat16 product reaches on that device; -1: not known
};

struct Progress {
  int64_t step = 0, steps = 0;
  double loss = 0, accuracy = 0;                // of the training batches since the last report
  double eval_accuracy = -1, eval_scaled = -1;  // last evaluation; -1: none yet
  double steps_per_second = 0;
  // Of a language model:
  bool text = false;
  double eval_loss = -1;
  Speed speed = {};
};

struct TrainOptions {
  std::string out;             // the run folder
  std::string device = "cpu";  // or "cuda", once its library is loaded
  bool resume = false;
  bool extend = false;         // with resume: train.steps and train.stop_at may have changed
  bool overwrite = false;      // removes the run that is there, if it is one and nothing else
  bool tensorboard = false;    // write event files, too; a run that has them goes on with them
  training::Ranks ranks = {};  // several processes train the model; the lead alone has the folder
  bool verify = false;         // the sums of all files of data, not only the first time
  std::function<void(const Progress&)> progress = {};  // called now and then
  std::function<void(const std::string&)> warn = {};   // of what is no error; default: stderr
  std::function<bool()> interrupted = {};              // true: finish the step, save, stop
};

struct TrainResult {
  training::Evaluation evaluation;  // of the final weights
  int64_t step = 0, skipped = 0;
  int64_t began = 0;  // the step this process went on from
  bool interrupted = false;
  double seconds = 0;
  std::vector<std::string> damaged;  // checkpoints that were passed over, as in Run
};
TrainResult train(const RunConfig& config, const TrainOptions& options);

// What a run says of itself while it is at work. A thread hands it over as it is, a process writes
// it as a line of JSON (docs/training.md).
struct Message {
  enum Kind { kProgress, kWarning, kError } kind = kProgress;
  Progress progress = {};
  std::string text = {}, hint = {};  // of a warning or an error
};

// Short enough for a pipe to pass it on in one piece.
std::string to_line(const Message& message);
// Nothing when the line is none of ours.
std::optional<Message> from_line(const std::string& line);

// A run folder at step 0 with the weights of `model`: it is opened, and its training goes on, like
// that of any other. Without `moments`, which take twice the room of the weights, it is opened, and
// trained with start_from.
void write_start(const std::string& folder, const RunConfig& config, model::Model& model,
                 const tasks::Task& task, bool overwrite = false, bool moments = true);

// The same with the weights of the run or checkpoint `from`, which may have been compiled and is
// the result. With `overwrite` a run in the folder makes room.
Run start_from(const std::string& from, const std::string& folder, const RunConfig& config,
               bool overwrite = false);

// What training this config would take; nothing large is taken to find out.
training::MemoryEstimate memory_of(const RunConfig& config, bool gpu = false);

}  // namespace lrnn::experiments
