#pragma once
#include <cstdint>
#include <vector>

#include "training/token_losses.h"

namespace lrnn::experiments {

// What a language model loses at one position, over many sequences: how its memory lasts.
struct PositionLoss {
  int64_t position = 0;  // tokens read when it predicts: 1, 2, …
  double loss = 0;       // mean over the sequences
  double error = 0;      // of that mean: one standard error
  double smoothed = 0;   // moving mean over positions
  double running = 0;    // perplexity: exp(mean over sequences of the mean loss up to here)
  double accuracy = 0;
  int64_t sequences = 0;
};

class ByPosition {
 public:
  void add(const tasks::Example& example, const training::TokenLosses& losses);
  // Smoothed over `smooth` positions, the place itself in the middle; positions at which there
  // never was a target are left out.
  std::vector<PositionLoss> rows(int64_t smooth) const;

 private:
  struct Sum {
    double loss = 0, squares = 0, running = 0;
    int64_t right = 0, count = 0, until = 0;  // until: sequences with a target up to here
  };
  std::vector<Sum> sums_;
};

}  // namespace lrnn::experiments
