#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace lrnn::cli {

// A line needs no more points than a reader can see: so many to an octave, each so many times as
// far as the last.
constexpr double kPositionsPerOctave = 24;
inline const double kNextPosition = std::exp2(1 / kPositionsPerOctave);

struct PositionOptions {
  std::string out;     // the figure
  std::string domain;  // empty: all, a panel each
  int64_t first = 64;  // positions before it are left out: there a curve falls from the roof
  bool json = false;
};

// Loss by position of language models, from what `lrnn eval --lengths` left in their folders.
int show_positions(const std::vector<std::string>& runs, const PositionOptions& how);

}  // namespace lrnn::cli
