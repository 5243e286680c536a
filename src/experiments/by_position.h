#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "training/token_losses.h"

namespace lrnn::experiments {

// What a language model loses at one position, over many sequences: how its memory lasts.
struct PositionLoss {
  int64_t position = 0;  // tokens read when it predicts: 1, 2, …
  double loss = 0;       // mean over the sequences
  double smoothed = 0;   // the same of the moving mean over positions
  double error = 0;      // of that, over the sequences: one standard error
  double running = 0;    // perplexity: exp(mean over sequences of the mean loss up to here)
  double accuracy = 0;
  int64_t sequences = 0;
};

class ByPosition {
 public:
  // Smoothed over so many positions, the place itself in the middle. Near the beginning, where a
  // curve is steep, over fewer, as many on one side as on the other; at the end over those there
  // are.
  explicit ByPosition(int64_t smooth) : half_(smooth / 2) {}

  void add(const tasks::Example& example, const training::TokenLosses& losses);
  // Positions at which there never was a target are left out.
  std::vector<PositionLoss> rows() const;

 private:
  struct Sum {
    double loss = 0, smoothed = 0, squares = 0, running = 0;
    int64_t right = 0, count = 0;
  };
  int64_t half_;
  std::vector<Sum> sums_;
};

struct DomainCurve {
  std::string name;
  std::vector<PositionLoss> rows;
};
constexpr const char* kPositionColumns =
    "domain,position,loss,smoothed,running_perplexity,accuracy,sequences";
// RUN/eval/position.csv as `lrnn eval` wrote it, all of its rows or some; the errors are not in it.
std::vector<DomainCurve> read_positions(const std::string& run);

}  // namespace lrnn::experiments
