#pragma once
#include <vector>

#include "experiments/message.h"

namespace lrnn::experiments {

// Work that goes on beside this thread, and what it says. There are two kinds, each with a reason:
//
//   Process         what happens to one happens to no other, and LibTorch's thread pool belongs to
//                   a process: on the CPU every run is one
//   TrainingThread  for runs that share a GPU: kernels of different processes take turns on it,
//                   those of one process run side by side
class Child {
 public:
  Child() = default;
  virtual ~Child() = default;  // stops it and waits
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  virtual bool running() = 0;               // looks, does not wait
  virtual void stop() = 0;                  // save, then end
  virtual std::vector<Message> said() = 0;  // since the last call
  // Once it does not run any more: 0 done, 2 failed, 130 stopped; 128 + n after signal n.
  virtual int code() const = 0;
};

}  // namespace lrnn::experiments
