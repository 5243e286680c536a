#pragma once
#include <functional>
#include <map>
#include <memory>

#include "ops/gpu.h"

namespace lrnn::training {

// One kind of work on a GPU, recorded once for every shape it comes in and replayed: a small model
// is bound by launches otherwise. One at a time is under way, so the recordings share their memory.
template <class Shape, class Work> class Recordings {
 public:
  struct Entry : Work {
    std::unique_ptr<ops::Recording> recording;
  };
  // With `record` false every kernel is launched by itself: the same bits, for tests.
  explicit Recordings(bool record) : record_(record) {}

  Entry& at(const Shape& shape) { return entries_[shape]; }  // empty when it is new
  bool wanted(const Entry& entry) const { return record_ && !entry.recording; }
  void record(Entry& entry, const std::function<void()>& work) {
    entry.recording = ops::gpu()->record(work, any_);
    any_ = entry.recording.get();
  }
  // Those of shapes that do not come again; nothing may be under way.
  void clear() { entries_.clear(), any_ = nullptr; }
  int64_t size() const { return int64_t(entries_.size()); }
  static void run(Entry& entry, const std::function<void()>& work) {
    entry.recording ? entry.recording->replay() : work();
  }

 private:
  bool record_;
  const ops::Recording* any_ = nullptr;
  std::map<Shape, Entry> entries_;
};

}  // namespace lrnn::training
