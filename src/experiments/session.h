#pragma once
#include <chrono>
#include <memory>

#include "experiments/checkpoint_writer.h"
#include "experiments/event_file.h"
#include "experiments/files.h"
#include "experiments/folder.h"
#include "training/threads.h"
#include "training/trainer.h"

namespace lrnn::experiments {

// One process's share of a run: from the newest whole checkpoint, or from the start, to the end or
// an interruption.
class Session {
 public:
  Session(const RunConfig& config, const TrainOptions& options);
  TrainResult run();

 private:
  void settle_machine();
  std::string restore();  // the line of metrics.jsonl if the run ends elsewhere from here on
  void share_start();
  bool agreed(bool best);
  void open_logs(const std::string& change);
  void note(const nlohmann::ordered_json& line);
  void train_one();
  void log(const training::Update& last);
  void log_time();
  Speed speed(int64_t tokens, double in) const;
  void measure();
  bool evaluate();  // whether it is the best so far
  nlohmann::ordered_json evaluation_line() const;
  bool is_best();
  void save();
  void report(bool now);
  void warn(const std::string& sentence) const;
  double seconds() const;
  bool lead() const { return options_.ranks.lead(); }
  bool read_result(TrainResult& out) const;
  TrainResult finish(bool interrupted);
  bool finished() const { return config_.train.ended(state_.step, state_.best_accuracy); }

  RunConfig config_;
  const TrainOptions& options_;
  std::shared_ptr<void> stream_;  // of a run on a GPU
  tasks::TaskPtr task_;
  model::ModelPtr model_;
  // After task and model: what cannot be built leaves no folder behind. Of the lead alone.
  std::unique_ptr<Folder> folder_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::unique_ptr<training::Threads> threads_;
  std::unique_ptr<training::Trainer> trainer_;
  std::unique_ptr<training::Evaluator> evaluator_;
  std::unique_ptr<AppendFile> metrics_, timing_;  // of the lead alone
  std::unique_ptr<EventFile> events_;             // for TensorBoard, if wanted

  RunState state_;
  std::map<std::string, torch::Tensor> restored_;  // the optimiser's, until all ranks have it
  std::vector<std::string> damaged_;               // checkpoints that were passed over
  training::Evaluation evaluation_;
  std::optional<training::Evaluation> validation_;  // made with it
  int64_t began_ = 0, evaluated_at_ = -1, saved_at_ = -1, skipped_in_a_row_ = 0;

  // Since the last report to options_.progress.
  Progress progress_;
  double loss_sum_ = 0;
  int64_t updates_ = 0, right_ = 0, targets_ = 0, tokens_ = 0;
  int64_t timed_tokens_ = 0;  // since the last line of timing.jsonl
  std::chrono::steady_clock::time_point begin_, reported_, timed_;
  double flops_per_token_ = 0;  // of a language model
  std::optional<double> peak_;  // FLOP a second, of devices that we have measured
  double seconds_before_ = 0;
};

}  // namespace lrnn::experiments
