#pragma once
#include <cstdint>
#include <vector>

// Which window of which text an example is. Everything here is computed from numbers: there is no
// table to keep and no place to remember when a run goes on.
namespace lrnn::tasks {

struct Place {
  size_t source = 0;
  uint64_t number =
      0;  // of the example among those of its source; of the window, once that is known
};

// Training: of every kBlock consecutive examples each source gives its exact share.
class Mixture {
 public:
  static constexpr uint64_t kBlock = 65536;

  explicit Mixture(const std::vector<double>& weights);
  Place at(uint64_t seed, uint64_t index) const;
  const std::vector<uint64_t>& counts() const { return counts_; }  // of a block

 private:
  std::vector<uint64_t> counts_;
};

// Example `number` of a source with so many windows: every window once in each epoch, in a new
// order each time.
uint64_t window_of(uint64_t seed, const Place& place, uint64_t windows);

// Evaluation: the sources take turns, each with its windows from the first to the last.
class Turns {
 public:
  explicit Turns(std::vector<uint64_t> windows) : windows_(std::move(windows)) {}
  uint64_t total() const;
  Place at(uint64_t index) const;  // below total()

 private:
  std::vector<uint64_t> windows_;
};

}  // namespace lrnn::tasks
