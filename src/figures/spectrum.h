#pragma once
#include <complex>
#include <string>
#include <vector>

#include "figures/style.h"

// Pictures of eigenvalues: of what a recurrence may do to its state at one token.
namespace lrnn::figures {

// The letters that the values belong to, each with a look of its own; values name them by index.
struct Letter {
  std::string name;
  Style style;
};

// Real eigenvalues, one row of bars on [-1, 1] each, with the boundary at 0 that a range of [0, 1]
// cannot cross.
struct Strip {
  std::string name;
  // Of each letter: the share of all values that are its, over equal bins from -1 to 1.
  std::vector<std::vector<double>> shares;
};
struct Strips {
  std::string title = {}, x_label = {};
  std::vector<Letter> letters = {};
  std::vector<Strip> rows = {};
};
std::string draw(const Strips& strips);

// Complex eigenvalues with the unit circle, one small plane per entry.
struct Plane {
  struct Dot {
    std::complex<double> value;
    size_t letter = 0;
  };
  std::string name;
  std::vector<Dot> dots;
};
struct Planes {
  std::string title = {};
  std::vector<Letter> letters = {};
  std::vector<Plane> planes = {};
};
std::string draw(const Planes& planes);

// How many of `values` fall into each of `bins` equal bins over [-1, 1], as shares of `all` of them
// (0: of these); ends are included.
std::vector<double> shares(const std::vector<double>& values, size_t bins, size_t all = 0);
// The same as one line of block letters for a terminal: ▁▂▃▄▅▆▇█, "·" for an empty bin.
std::string bars(const std::vector<double>& shares);

}  // namespace lrnn::figures
