#pragma once
#include <map>
#include <vector>

#include "model/model.h"
#include "tasks/task.h"

// Whether a language model uses the wider range: how often a step size beta lies above 1, where the
// eigenvalue 1 - beta is negative.
namespace lrnn::experiments {

struct BetaShare {
  int64_t count = 0, above = 0;  // above 1
  int64_t ends = 0;              // within 0.001 of 2
  double sum = 0, largest = 0;

  void add(double beta);
  void add(const BetaShare& other);
  double share() const { return count ? double(above) / double(count) : 0; }
  double mean() const { return count ? sum / double(count) : 0; }
};

struct Betas {
  struct Head {
    int64_t layer, head;  // counted from 1
    BetaShare share;
  };
  // One token of one window, over all heads.
  struct Place {
    int64_t window = 0, position = 0;  // counted from 0
    BetaShare share;
  };
  std::vector<Head> heads;
  BetaShare all;
  std::map<int64_t, BetaShare> by_token;  // over all heads, at the token that is read
  std::vector<BetaShare> by_position;     // the same by its place in a window
  std::vector<Place> places;              // where most of the betas lie above 1, the first few
  int64_t tokens = 0;
};

// Over so many held-out windows. No heads where no mixer has a beta.
Betas betas(model::Model& model, const tasks::Task& task, uint64_t seed, int64_t samples);

}  // namespace lrnn::experiments
