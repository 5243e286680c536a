#include "experiments/worker.h"

#include <filesystem>

#include "experiments/folder.h"
#include "experiments/process.h"
#include "experiments/training_thread.h"

namespace lrnn::experiments {
namespace {

// For those that ended without a word.
std::string reason(int code) {
  if (code == 127) return "the program could not be started";
  if (code == 130) return "it was stopped from outside";
  if (code > 128) return cat("the process was ended by signal ", code - 128);
  return cat("it ended with exit code ", code, " and did not say why");
}

}  // namespace

Worker::Worker(const PlannedRun& run, size_t index, const RunnerOptions& options)
    : run_(run), index_(index), options_(options) {
  std::filesystem::create_directories(run.folder);
  // Other steps would extend a run that is there, unless that was asked for.
  if (const auto config = run.folder + "/config.yaml"; std::filesystem::exists(config))
    require_same(config, run.resolved, options.extend);
  if (options.device != "cpu") {
    child_ = std::make_unique<TrainingThread>(run.resolved,
                                              TrainOptions{.out = run.folder,
                                                           .device = options.device,
                                                           .extend = options.extend,
                                                           .tensorboard = options.tensorboard});
    return;
  }
  std::vector<std::string> words = {"train", run.config};
  words.insert(words.end(), run.overrides.begin(), run.overrides.end());
  for (const auto& word : {std::string("--out"), run.folder, std::string("--resume")})
    words.push_back(word);
  if (options.tensorboard) words.emplace_back("--tensorboard");
  if (options.force) words.emplace_back("--force");
  start(std::move(words), "");
}

void Worker::start(std::vector<std::string> words, const std::string& out) {
  words.insert(words.begin(), options_.program.empty() ? this_program() : options_.program);
  words.emplace_back("--progress"), words.emplace_back(Process::kMessages);
  Process::Command command{std::move(words), out, run_.folder + "/train.log", {}};
  if (options_.threads > 0)
    command.environment.emplace_back("OMP_NUM_THREADS", std::to_string(options_.threads));
  child_ = std::make_unique<Process>(command);
}

void Worker::stop() {
  stopped_ = true;
  child_->stop();
}

void Worker::measure(RunProgress& progress) {
  measuring_ = true;
  progress.state = RunProgress::kMeasuring;
  progress.now.step = progress.now.steps;
  std::filesystem::create_directories(std::filesystem::path(partial()).parent_path());
  child_.reset();  // a thread gives its memory back
  start({"eval", run_.folder, "--json", "--device", options_.device}, partial());
}

bool Worker::look(RunProgress& progress) {
  const bool running = child_->running();  // before the last words are read
  for (auto& message : child_->said()) {
    if (message.kind == Message::kProgress) progress.now = message.progress;
    if (message.kind == Message::kWarning) progress.warnings.push_back(std::move(message.text));
    if (message.kind == Message::kError) progress.error = std::move(message.text);
  }
  if (running) return true;
  const int code = child_->code();
  if (code == 0 && !measuring_ && wants_lengths(run_)) return measure(progress), true;
  if (code == 0) {
    if (measuring_) std::filesystem::rename(partial(), lengths_file(run_));
    progress.state = RunProgress::kDone, progress.now.step = progress.now.steps;
    return false;
  }
  progress.state = stopped_ ? RunProgress::kWaiting : RunProgress::kFailed;
  if (!stopped_ && progress.error.empty()) progress.error = reason(code);
  return false;
}

}  // namespace lrnn::experiments
