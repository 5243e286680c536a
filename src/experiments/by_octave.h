#pragma once
#include <cstdint>
#include <vector>

#include "training/token_losses.h"

namespace lrnn::experiments {

// What one sequence loses between a position and twice the position. Sequences differ far more from
// each other than models do: models that read the same ones are compared sequence by sequence.
struct OctaveLoss {
  int64_t sequence = 0;  // 0, 1, … in the order they were read
  int64_t from = 0, to = 0;  // tokens read, both included: 1–1, 2–3, 4–7, …, the last may be cut
  double loss = 0;           // mean over the targets
  int64_t targets = 0;
};

class ByOctave {
 public:
  void add(const tasks::Example& example, const training::TokenLosses& losses);
  // Octaves without a target are left out.
  const std::vector<OctaveLoss>& rows() const { return rows_; }

 private:
  int64_t sequences_ = 0;
  std::vector<OctaveLoss> rows_;
};

}  // namespace lrnn::experiments
