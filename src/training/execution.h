#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "training/adamw.h"
#include "training/batch.h"
#include "training/ranks.h"

namespace lrnn::training {

// What one batch did.
struct Update {
  double loss = 0, lr = 0, grad_norm = 0;  // the norm before clipping
  int64_t right = 0, targets = 0;
  int64_t length = 0;    // of the words, at most
  bool skipped = false;  // loss or gradient was not finite: no weight, no moment changed
};

// One batch, cut into train.accumulate parts.
struct Parts {
  int64_t index = -1, targets = 0;
  std::vector<Batch> parts;
  torch::Tensor message;  // all that a GPU needs, in one piece
};

// How the forward, the backward and the update of a batch are carried out.
class Execution {
 public:
  virtual ~Execution() = default;
  // The length to which examples are padded where the longest has that many tokens; 0: they are
  // packed.
  virtual int64_t padded(int64_t longest) const = 0;
  virtual void prepare(Parts& parts) const = 0;  // any time before they are run
  // Makes the update, whose `lr` and `targets` are known, and says what it did. Calls `meanwhile`
  // if there is something to wait for. The result: the parts where they were computed.
  virtual const std::vector<Batch>& run(const Parts& parts, Update& update,
                                        const std::function<void()>& meanwhile) = 0;
  // Batches will have other lengths from now on: what was kept for those before is not needed.
  virtual void forget_lengths() {}
  virtual int64_t kernels() const { return 0; }  // and copies, of the last recorded update
  virtual int64_t recordings() const { return 0; }
};

// With several ranks the update is that of all their parts.
//
// On the CPU, each operation as it comes.
std::unique_ptr<Execution> as_it_comes(model::Model& model, AdamW& optimizer,
                                       const TrainConfig& config, const Ranks& ranks);
// On a GPU, recorded by shape and replayed. Lengths are multiples of `bucket`.
std::unique_ptr<Execution> recorded(model::Model& model, AdamW& optimizer,
                                    const TrainConfig& config, const Ranks& ranks, int64_t bucket,
                                    bool record);

}  // namespace lrnn::training
