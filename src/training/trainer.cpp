#include "training/trainer.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <utility>

#include "ops/torch.h"
#include "training/config.h"
#include "training/head_loss.h"

namespace lrnn::training {
namespace {

// Few recordings, little padding: an eighth of the longest sequence, and a multiple of 8. Where all
// are equally long there is one recording anyway.
int64_t bucket_of(const tasks::Task& task) {
  const Range length = task.length(tasks::Split::kTrain);
  return length.lo == length.hi ? 1 : std::max<int64_t>(8, (length.hi / 8 + 7) / 8 * 8);
}

// Examples are pure functions of their numbers: large batches are drawn by several threads, so that
// a GPU need not wait for one. The CPU's threads are those the config allows.
constexpr int64_t kTokensPerThread = 32768;
constexpr int64_t kMostThreads = 4;

}  // namespace

Trainer::Trainer(model::Model& model, const tasks::Task& task, const TrainConfig& config,
                 uint64_t seed, bool record, const Ranks& ranks)
    : model_(model),
      task_(task),
      config_(config),
      seed_(seed),
      ranks_(ranks),
      optimizer_(model, config, ranks),
      growth_(Growth::begin(config, words())) {
  check(model.vocabulary() == task.vocabulary(), "the model knows ", model.vocabulary(),
        " tokens, the task has ", task.vocabulary());
  if (config.label_smoothing > 0 && is_language(task.vocabulary()))
    throw Error(cat("train.label_smoothing is for tasks with few answers, and this one has ",
                    task.vocabulary(), " tokens"),
                "leave it at 0");
  if (config.grow_at > 0 && task.score() == tasks::Score::kText)
    throw Error("train.grow_at is for tasks with words, and this one reads a text",
                "leave it at 0");
  if (config.batch < config.accumulate * ranks.count())
    throw Error(cat("train.batch is ", config.batch, ", and ", ranks.count(), " processes with ",
                    config.accumulate, " parts each need a sequence for every part"),
                "make the batch larger, or start fewer processes");
  const auto again = recompute_of(config, model, !model.device().is_cpu());
  model.recompute(again.what, again.blocks);
  execution_ = model.device().is_cpu()
                   ? as_it_comes(model, optimizer_, config, ranks)
                   : recorded(model, optimizer_, config, ranks, bucket_of(task), record);
}

// Where every letter has an answer words can be cut; elsewhere a task may know none so short.
Range Trainer::words() const {
  const Range length = task_.length(tasks::Split::kTrain);
  return {task_.asks_after_every_letter() ? 1 : length.lo, length.hi};
}

std::vector<tasks::Example> Trainer::examples(int64_t index, int64_t longest) const {
  const int64_t batch = config_.batch, first = index * batch;
  const int64_t threads =
      model_.device().is_cpu()
          ? 1
          : std::clamp<int64_t>(batch * longest / kTokensPerThread, 1, kMostThreads);
  const auto some = [=, this](int64_t from, int64_t count) {
    return draw_up_to(task_, seed_, longest, from, count);
  };
  if (threads == 1) return some(first, batch);
  std::vector<std::future<std::vector<tasks::Example>>> shares;
  for (int64_t i = 0; i < threads; ++i) {
    const int64_t begin = i * batch / threads, end = (i + 1) * batch / threads;
    shares.push_back(
        std::async(std::launch::async, [=] { return some(first + begin, end - begin); }));
  }
  std::vector<tasks::Example> out;
  out.reserve(size_t(batch));
  for (auto& share : shares)
    for (auto& example : share.get()) out.push_back(std::move(example));
  return out;
}

// The parts are as equal in size as can be. Part p of rank r is number p*count + r of the batch, so
// that W ranks with one part each do what one rank does with W parts.
Parts Trainer::make(int64_t index, int64_t longest) const {
  const auto all = examples(index, longest);
  const int64_t length = execution_->padded(training::longest(all.data(), config_.batch));
  Parts out;
  out.index = index;
  const int64_t parts = config_.accumulate * ranks_.count();
  for (int64_t part = ranks_.rank(); part < parts; part += ranks_.count()) {
    const int64_t first = part * config_.batch / parts, last = (part + 1) * config_.batch / parts;
    out.parts.push_back(make_batch(&all[size_t(first)], last - first, task_.vocabulary(), length));
  }
  out.targets = targets_of(all.data(), config_.batch);
  execution_->prepare(out);
  return out;
}

Update Trainer::update(int64_t step, int64_t index) {
  const Parts parts = next_.index == index ? std::exchange(next_, {}) : make(index, growth_.length);
  Update out;
  out.lr = learning_rate(config_, step), out.targets = parts.targets;
  const auto& computed =
      execution_->run(parts, out, [&] { next_ = make(index + 1, growth_.then); });
  out.length = growth_.length;
  growth_.saw(config_, words(), out.skipped ? 0 : out.right, out.skipped ? 0 : out.targets);
  if (growth_.length != out.length) execution_->forget_lengths();
  if (out.skipped && config_.nonfinite == "stop") stop(step, computed, out);
  return out;
}

void Trainer::stop(int64_t step, const std::vector<Batch>& parts, const Update& update) {
  const bool loss = !std::isfinite(update.loss);
  std::string where = loss ? "" : find_in_gradients(model_);
  // The weights are as they were: the same parts show the same again. One whose loss is finite says
  // no more than "the loss".
  if (loss)
    for (const auto& part : parts)
      if (where.empty() || where.starts_with("the loss"))
        where = find_in_forward(model_, part, config_.precision);
  if (ranks_.count() > 1 && (where.empty() || where.starts_with("the loss")))
    where = "the share of another process, which names it";
  throw Error(cat("the ", loss ? "loss" : "gradient", " is not finite at step ", step,
                  ": first in ", where),
              "lower train.lr, set train.clip=1, or pass over such batches with "
              "train.nonfinite=skip");
}

}  // namespace lrnn::training
