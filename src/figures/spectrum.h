#pragma once
#include <complex>
#include <string>
#include <vector>

// Pictures of eigenvalues: of what a linear recurrence may do to its state at one token.
namespace lrnn::figures {

// Real eigenvalues, one row of bars on [-1, 1] each, with the boundary at 0 that a range of [0, 1]
// cannot cross.
struct Strip {
  std::string name;
  std::vector<double> shares;  // of the values, over equal bins from -1 to 1
};
struct Strips {
  std::string title, x_label;
  std::vector<Strip> rows;
};
std::string draw(const Strips& strips);

// Complex eigenvalues with the unit circle, one small plane per entry.
struct Plane {
  std::string name;
  std::vector<std::complex<double>> values;
};
struct Planes {
  std::string title;
  std::vector<Plane> planes;
};
std::string draw(const Planes& planes);

// The share of `values` in each of `bins` equal bins over [-1, 1]; ends are included.
std::vector<double> shares(const std::vector<double>& values, size_t bins);
// The same as one line of block letters for a terminal: ▁▂▃▄▅▆▇█, "·" for an empty bin.
std::string bars(const std::vector<double>& shares);

}  // namespace lrnn::figures
