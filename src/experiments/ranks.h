#pragma once
#include <functional>
#include <string>
#include <vector>

#include "model/model.h"
#include "tasks/task.h"

// How much of its memory a model uses: the effective rank of each head's state along a sequence
// (Siems et al. 2025). A state whose rank goes on growing beyond the length of training holds what
// it never learnt to overwrite.
namespace lrnn::experiments {

// One head over the sequences of a domain.
struct HeadRank {
  int64_t layer = 0, head = 0;  // counted from 1
  int64_t most = 0;             // the largest it can be: the smaller side of the state
  int64_t steps = 1;            // updates of the state per token
  std::vector<double> rank;     // before each of them, every so many tokens; the mean of sequences
};

struct DomainRanks {
  std::string name;
  int64_t sequences = 0;
  std::vector<HeadRank> heads;      // none: no layer has a matrix state
  std::vector<int64_t> beginnings;  // tokens of the first sequence that a document begins with
};

struct RankOptions {
  int64_t length = 16384, every = 1;  // tokens; from one look at the state to the next
  int64_t samples = 0;                // sequences; 0: one of each domain
  uint64_t seed = 0;
  std::string precision = "float32", accuracy = {};  // of the model; the states are float32
};

// `told` hears how many tokens were read. Memory does not grow with the length but for the ranks
// themselves.
std::vector<DomainRanks> ranks(model::Model& model, const tasks::Task& task,
                               const RankOptions& options,
                               const std::function<void(int64_t tokens)>& told = {});

}  // namespace lrnn::experiments
