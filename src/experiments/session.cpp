#include "experiments/session.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/atomic_file.h"
#include "experiments/folder.h"
#include "experiments/metrics.h"
#include "model/checkpoint.h"
#include "ops/gpu.h"
#include "training/flops.h"

namespace lrnn::experiments {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using training::Update;

namespace {

// A run whose every batch is skipped would never end.
constexpr int64_t kSkipsInARow = 100;
constexpr double kReportSeconds = 0.2;

bool due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

double ratio(double a, int64_t b) { return b ? a / double(b) : 0; }

tasks::TaskPtr make_ready(const RunConfig& config, const TrainOptions& options) {
  auto task = tasks::make(config.task);
  task->verify(options.verify);
  return task;
}

// The seconds that earlier processes spent on the run.
double seconds_before(const std::string& file) {
  const auto lines = read_json_lines(file);
  return lines.empty() ? 0 : lines.back().value("seconds", 0.0);
}

// All evaluations of the run so far, for other programs.
void write_curve(const Folder& folder) {
  fs::create_directories(folder.file("eval"));
  write_atomically(folder.file("eval/curve.csv"),
                   evaluations_csv(read_json_lines(folder.file("metrics.jsonl"))));
}

}  // namespace

Session::Session(const RunConfig& config, const TrainOptions& options)
    : config_(config),
      options_(options),
      task_(make_ready(config, options)),
      model_(build(config, *task_)),
      folder_(lead() ? std::make_unique<Folder>(options.out, config,
                                                Folder::Begin{.resume = options.resume,
                                                              .extend = options.extend,
                                                              .overwrite = options.overwrite})
                     : nullptr) {
  if (options.device != "cpu") {
    check(ops::gpu() != nullptr, "the kernels for ", options.device, " are not loaded");
    stream_ = ops::gpu()->own_stream();
    model_->to(torch::Device(options.device));
  }
  if (folder_)
    writer_ = std::make_unique<CheckpointWriter>(folder_->checkpoints(), config.train.keep);
  settle_machine();
  trainer_ = std::make_unique<training::Trainer>(*model_, *task_, config.train,
                                                 uint64_t(config.seed), true, options.ranks);
  evaluator_ = std::make_unique<training::Evaluator>(*model_, *task_);
  const std::string change = folder_ && folder_->existed() ? restore() : "";
  share_start();
  if (state_.growth) trainer_->go_on(*state_.growth);
  if (lead()) open_logs(change);
  if (task_->score() == tasks::Score::kText)
    flops_per_token_ = training::flops_per_token(*model_, task_->length(tasks::Split::kTrain).hi);
  if (options.device != "cpu" && config.train.precision == "bfloat16")
    peak_ = training::product_flops(ops::gpu()->name());
  begin_ = reported_ = timed_ = Clock::now();
}

// All ranks work with as many threads as the lead.
void Session::settle_machine() {
  int64_t threads = 1;
  if (lead()) {
    const auto settled =
        folder_->settle({.threads = training::choose_threads(*model_, *task_, config_.train),
                         .device = options_.device,
                         .gpu = options_.device == "cpu" ? "" : ops::gpu()->name()},
                        task_->material());
    if (settled.device != options_.device)
      warn(cat("the run began on ", settled.device, " and goes on on ", options_.device,
               ": its bits will differ"));
    threads = settled.threads;
  }
  threads_ =
      std::make_unique<training::Threads>(std::stoll(options_.ranks.from_lead(cat(threads))));
}

void Session::warn(const std::string& sentence) const {
  options_.warn ? options_.warn(sentence) : fmt::print(stderr, "warning: {}\n", sentence);
}

// Where the lead goes on from, for everybody: nobody else needs to see the folder.
void Session::share_start() {
  const auto& ranks = options_.ranks;
  if (ranks.count() == 1) return;
  auto& optimizer = trainer_->optimizer();
  agreed(false);
  saved_at_ = std::stoll(ranks.from_lead(cat(saved_at_)));
  began_ = state_.step;
  for (const auto& [name, x] : model::tensors_of(*model_)) ranks.from_lead(x);
  auto moments = optimizer.state();
  for (auto& [name, x] : moments) {
    if (lead() && restored_.contains(name)) x.copy_(restored_.at(name).view_as(x));
    ranks.from_lead(x);
  }
  optimizer.load(moments, "the lead's optimiser");
  restored_.clear();
}

// The lead's measurements hold, should another machine round otherwise.
bool Session::agreed(bool best) {
  if (options_.ranks.count() == 1) return best;
  state_ = parse_state(options_.ranks.from_lead(print(state_)), "the lead's state");
  return state_.best_step == state_.step;
}

void Session::open_logs(const std::string& change) {
  metrics_ = std::make_unique<AppendFile>(folder_->file("metrics.jsonl"), state_.metrics_bytes);
  if (!change.empty()) metrics_->line(change);
  if (!finished()) fs::remove(folder_->file("result.json"));  // of an end that is none any more
  const auto timing = folder_->file("timing.jsonl");
  seconds_before_ = seconds_before(timing);
  timing_ =
      std::make_unique<AppendFile>(timing, fs::exists(timing) ? int64_t(fs::file_size(timing)) : 0);
  const auto events = folder_->file("tensorboard");
  if (!options_.tensorboard && !fs::exists(events)) return;
  events_ = std::make_unique<EventFile>(events, state_.step);
  if (events_->first())  // nobody has told TensorBoard what happened so far
    for (const auto& line : read_json_lines(folder_->file("metrics.jsonl"))) events_->add(line);
}

std::string Session::restore() {
  const auto& checkpoints = folder_->checkpoints();
  const int64_t step = checkpoints.newest(&damaged_);
  for (const auto& sentence : damaged_) warn(cat(sentence, "; going on from step ", step));
  checkpoints.tidy(step);
  if (step < 0) return "";
  const std::string from = checkpoints.path(step);
  state_ = read_state(from + "/state.json");
  check(state_.step == step, from, "/state.json says step ", state_.step);
  const std::string weights = from + "/model.safetensors",
                    moments = from + "/optimizer.safetensors";
  if (!std::filesystem::exists(moments))
    throw Error(cat(from, " has weights and no state of an optimiser"),
                "begin a run with these weights: `lrnn train --from`");
  model::load_into(*model_, model::read_checkpoint(weights).tensors, weights);
  restored_ = model::read_checkpoint(moments).tensors;
  trainer_->optimizer().load(restored_, moments);
  if (options_.ranks.count() == 1) restored_.clear();
  checkpoints.mark_best(state_.best_step);
  saved_at_ = began_ = step;
  // What the checkpoint says held up to here, so that a process killed before the next one finds
  // the same change again. Before the first step there is nothing that it could change.
  return step == 0
             ? ""
             : change_of_end(step, read_config(from + "/config.yaml", {}).train, config_.train);
}

void Session::note(const Json& line) {
  if (!lead()) return;
  metrics_->line(line.dump());
  if (events_) events_->add(line);
}

TrainResult Session::run() {
  bool interrupted = false;
  while (!finished() && !interrupted) {
    train_one();
    interrupted = options_.ranks.any(options_.interrupted && options_.interrupted());
    if ((interrupted && !finished()) || due(state_.step, config_.train.checkpoint_every)) save();
    if (writer_) writer_->check();
    report(finished());
  }
  return finish(interrupted && !finished());
}

void Session::train_one() {
  const Update update = trainer_->update(state_.step, state_.step + state_.skipped);
  if (config_.train.grow_at > 0) state_.growth = trainer_->growth();
  if (update.skipped) {
    ++state_.skipped;
    check(++skipped_in_a_row_ < kSkipsInARow, "the loss or gradient was not finite in ",
          kSkipsInARow, " batches in a row, from step ", state_.step, " on");
    return;
  }
  skipped_in_a_row_ = 0;
  ++state_.step;
  state_.loss_sum += update.loss, loss_sum_ += update.loss;
  state_.right += update.right, right_ += update.right;
  state_.targets += update.targets, targets_ += update.targets;
  ++state_.updates, ++updates_;
  const int64_t tokens = config_.train.batch * task_->length(tasks::Split::kTrain).hi;
  tokens_ += tokens, timed_tokens_ += tokens;
  if (due(state_.step, config_.train.log_every) || finished()) log(update);
  if (due(state_.step, config_.train.eval_every) || finished())
    if (agreed(evaluate())) save();
}

void Session::log(const Update& last) {
  Json line{{"kind", "train"},
            {"step", state_.step},
            {"loss", ratio(state_.loss_sum, state_.updates)},
            {"accuracy", ratio(double(state_.right), state_.targets)},
            {"lr", last.lr},
            {"grad_norm", last.grad_norm},
            {"skipped", state_.skipped}};
  if (state_.growth) line["length"] = last.length;
  note(line);
  if (lead()) log_time();
  state_.loss_sum = 0;
  state_.updates = state_.right = state_.targets = 0;
}

// How fast it has been since the line before, evaluations and all.
void Session::log_time() {
  Json line{{"step", state_.step}, {"seconds", seconds()}};
  const auto now = Clock::now();
  if (flops_per_token_ > 0)
    add_speed(speed(timed_tokens_, std::chrono::duration<double>(now - timed_).count()), line);
  timed_ = now, timed_tokens_ = 0;
  timing_->line(line.dump());
}

Speed Session::speed(int64_t tokens, double in) const {
  const double rate = in > 0 ? double(tokens) / in : 0, flops = rate * flops_per_token_;
  return {.tokens_per_second = rate, .flops = flops, .mfu = peak_ ? flops / *peak_ : -1};
}

void Session::measure() {
  training::EvaluateOptions how;
  how.seed = uint64_t(config_.seed);
  how.precision = config_.train.precision;
  const training::Average::Shown average(trainer_->optimizer().average());
  evaluation_ = evaluator_->evaluate(how);
  validation_.reset();
  if (const auto other = validation_of(*task_, how, config_.train.validate))
    validation_ = evaluator_->evaluate(*other);
  evaluated_at_ = state_.step;
}

Json Session::evaluation_line() const {
  const auto& e = evaluation_;
  Json line{{"kind", "eval"}, {"step", state_.step}, {"loss", e.loss}, {"accuracy", e.accuracy()}};
  if (e.of_text()) {
    line["perplexity"] = e.all_domains().perplexity();
    line["bits_per_byte"] = e.all_domains().bits_per_byte();
    if (e.domains.size() > 1)
      for (const auto& domain : e.domains) line["domains"][domain.name] = domain.loss();
    return line;
  }
  line.update(scores_json(e));
  if (validation_) {
    const auto& v = *validation_;
    line["validation"] = {
        {"samples", v.sequences.count}, {"loss", v.loss}, {"accuracy", v.accuracy()}};
    line["validation"].update(scores_json(v));
  }
  return line;
}

bool Session::is_best() {
  const double accuracy = evaluation_.accuracy();
  bool better = accuracy > state_.best_accuracy;
  if (better) state_.best_accuracy = accuracy;
  if (validation_) {
    better = !state_.best_validation || validation_->accuracy() > *state_.best_validation;
    if (better) state_.best_validation = validation_->accuracy();
  }
  if (evaluation_.of_text()) {
    better = !state_.best_loss || evaluation_.loss < *state_.best_loss;
    if (better) state_.best_loss = evaluation_.loss;
  }
  if (better) state_.best_step = state_.step;
  return better;
}

bool Session::evaluate() {
  measure();
  progress_.text = evaluation_.of_text();
  progress_.eval_loss = evaluation_.loss;
  progress_.eval_accuracy = evaluation_.accuracy();
  progress_.eval_scaled = evaluation_.scaled();
  note(evaluation_line());
  return is_best();
}

void Session::save() {
  if (saved_at_ == state_.step) return;
  const auto moments = trainer_->optimizer().state();
  saved_at_ = state_.step;
  if (!lead()) return;
  const training::Average::Shown average(trainer_->optimizer().average());
  metrics_->sync();
  state_.metrics_bytes = metrics_->size();
  writer_->save({.model = model::tensors_of(*model_),
                 .moments = moments,
                 .state = state_,
                 .config = print_config(config_)});
}

double Session::seconds() const {
  return seconds_before_ + std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Session::report(bool now) {
  const auto time = Clock::now();
  const double passed = std::chrono::duration<double>(time - reported_).count();
  if ((passed < kReportSeconds && !now) || updates_ == 0) return;
  progress_.step = state_.step, progress_.steps = config_.train.steps;
  progress_.loss = ratio(loss_sum_, updates_);
  progress_.accuracy = ratio(double(right_), targets_);
  progress_.steps_per_second = double(updates_) / passed;
  progress_.text = task_->score() == tasks::Score::kText;
  if (progress_.text) progress_.speed = speed(tokens_, passed);
  if (options_.progress && lead()) options_.progress(progress_);
  reported_ = time;
  loss_sum_ = 0;
  updates_ = right_ = targets_ = tokens_ = 0;
}

// What the run has already reported; false when it has not, or the report cannot be read.
bool Session::read_result(TrainResult& out) const {
  const std::string file = folder_->file("result.json");
  if (!fs::exists(file)) return false;
  try {
    const auto json = Json::parse(read_file(file));
    if (json.at("step").get<int64_t>() != state_.step) return false;
    out.evaluation = evaluation_from_json(json.at("evaluation"));
    out.seconds = json.at("seconds").get<double>();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

TrainResult Session::finish(bool interrupted) {
  TrainResult out{.evaluation = {},
                  .step = state_.step,
                  .skipped = state_.skipped,
                  .began = began_,
                  .interrupted = interrupted,
                  .seconds = 0,
                  .damaged = damaged_};
  if (!interrupted) save();
  if (writer_) writer_->wait();
  out.seconds = seconds();
  if (lead()) write_curve(*folder_);
  if (interrupted || !lead()) return out;
  if (evaluated_at_ != state_.step) {
    if (read_result(out)) return out;
    // The process was killed between its last checkpoint and here; the weights give it again.
    measure();
  }
  out.evaluation = evaluation_;
  Json result{{"step", state_.step},
              {"skipped", state_.skipped},
              {"best_step", state_.best_step},
              {"best_accuracy", state_.best_accuracy}};
  if (state_.best_validation) result["best_validation"] = *state_.best_validation;
  if (state_.best_loss) result["best_loss"] = *state_.best_loss;
  result["seconds"] = out.seconds, result["evaluation"] = to_json(evaluation_);
  write_atomically(folder_->file("result.json"), result.dump(2) + "\n");
  return out;
}

TrainResult train(const RunConfig& config, const TrainOptions& options) {
  return Session(config, options).run();
}

}  // namespace lrnn::experiments
