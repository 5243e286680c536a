#pragma once
#include <string>

#include "experiments/checkpoints.h"
#include "training/config.h"

// A run that goes on may end elsewhere than it was going to: train.steps and train.stop_at may be
// others then, from the checkpoint on that it goes on from.
namespace lrnn::experiments {

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

}  // namespace lrnn::experiments
