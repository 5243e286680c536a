#pragma once
#include <string>
#include <vector>

namespace lrnn::figures {

// Where the numbers lo .. hi land between the pixels from .. to, evenly or by ratio.
struct Scale {
  double lo = 0, hi = 1, from = 0, to = 1;
  bool log = false;
  double operator()(double x) const;
};

struct Tick {
  double at;
  std::string label;
};

// About `count` round numbers (1, 2 or 5 times a power of ten) inside lo .. hi.
std::vector<Tick> ticks(double lo, double hi, int count);
// Powers of two (of four, of sixteen … when there would be more than `count`) inside lo .. hi.
std::vector<Tick> log_ticks(double lo, double hi, int count);
// lo .. hi widened outwards to round numbers; never empty, whatever is given.
void round_out(double& lo, double& hi, int count);

}  // namespace lrnn::figures
