#include "tests/emulator/runtime/capture.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/emulator/runtime/runtime.h"

namespace lrnn::emulator {
namespace {

struct Graph {
  std::vector<Work> nodes;
};

constexpr size_t kLine = 64;  // what changed is kept in pieces of this size

struct Capture {
  Graph graph;
  bool valid = true;
  unsigned long long id = 0;
  // Allocations as they were when the work under way began.
  struct Saved {
    Allocation allocation;
    std::unique_ptr<char[]> bytes;
  };
  std::map<char*, Saved> before;
  // What all work so far overwrote, in order.
  struct Overwritten {
    Allocation allocation;
    char* at;
    std::vector<char> bytes;
  };
  std::vector<Overwritten> overwritten;

  void save(const void* address) {
    with_allocation(address, [&](const Allocation& a) {
      auto& saved = before[a.begin];
      if (saved.bytes && saved.allocation.bytes == a.bytes) return;
      saved = {a, std::make_unique_for_overwrite<char[]>(a.bytes)};
      std::memcpy(saved.bytes.get(), a.begin, a.bytes);
    });
  }
  // The work has ended.
  void keep_changes() {
    for (const auto& [begin, saved] : before)
      in_place(saved.allocation, [&, old = saved.bytes.get()](const Allocation& a) {
        const auto same = [&](size_t at) {
          return std::memcmp(a.begin + at, old + at, std::min(kLine, a.bytes - at)) == 0;
        };
        for (size_t from = 0, to; from < a.bytes; from = to) {
          const bool unchanged = same(from);
          for (to = from; to < a.bytes && same(to) == unchanged;) to += kLine;
          to = std::min(to, a.bytes);
          if (!unchanged) overwritten.push_back({a, a.begin + from, {old + from, old + to}});
        }
      });
    before.clear();
  }
  void undo() {
    for (; !overwritten.empty(); overwritten.pop_back()) {
      const auto& last = overwritten.back();
      in_place(last.allocation, [&](const Allocation&) {
        std::memcpy(last.at, last.bytes.data(), last.bytes.size());
      });
    }
  }

 private:
  // Memory that was given back meanwhile is somebody else's.
  template <class Do> static void in_place(const Allocation& known, const Do& work) {
    with_allocation(known.begin, [&](const Allocation& a) {
      if (a.begin == known.begin && a.bytes == known.bytes) work(a);
    });
  }
};

// The captures under way. Several threads may work for one, one after another.
struct Captures {
  std::mutex mutex;
  std::map<cudaStream_t, std::unique_ptr<Capture>> of;
  unsigned long long last = 0;
  static Captures& the() {
    static auto* const one = new Captures;
    return *one;
  }
  Capture* find(cudaStream_t stream) {
    const auto found = of.find(stream);
    return found == of.end() ? nullptr : found->second.get();
  }
};

// Whose turn it is. One who wants to be alone is not made to wait by those who come later.
struct Turns {
  std::mutex mutex;
  std::condition_variable changed;
  int together = 0, waiting = 0;
  bool alone = false;
  static Turns& the() {
    static auto* const one = new Turns;
    return *one;
  }
};
thread_local bool has_turn = false;

}  // namespace

Turn::Turn(cudaStream_t stream)
    : stream_(stream), inner_(has_turn), captured_(!inner_ && capturing(stream)) {
  if (inner_) return;
  has_turn = true;
  auto& turns = Turns::the();
  std::unique_lock lock(turns.mutex);
  if (captured_) {
    ++turns.waiting;
    turns.changed.wait(lock, [&] { return !turns.alone && turns.together == 0; });
    --turns.waiting;
    turns.alone = true;
  } else {
    turns.changed.wait(lock, [&] { return !turns.alone && turns.waiting == 0; });
    ++turns.together;
  }
}
Turn::~Turn() {
  if (inner_) return;
  has_turn = false;
  if (captured_) {
    auto& all = Captures::the();
    const std::lock_guard lock(all.mutex);
    if (auto* capture = all.find(stream_)) capture->keep_changes();
  }
  auto& turns = Turns::the();
  const std::lock_guard lock(turns.mutex);
  captured_ ? void(turns.alone = false) : void(--turns.together);
  turns.changed.notify_all();
}
void Turn::may_write(const void* address) {
  auto& all = Captures::the();
  const std::lock_guard lock(all.mutex);
  if (auto* capture = all.find(stream_)) capture->save(address);
}

bool capturing(cudaStream_t stream) {
  auto& all = Captures::the();
  const std::lock_guard lock(all.mutex);
  return all.find(stream) != nullptr;
}

void record(cudaStream_t stream, Work again) {
  auto& all = Captures::the();
  const std::lock_guard lock(all.mutex);
  if (auto* capture = all.find(stream)) capture->graph.nodes.push_back(std::move(again));
}

cudaError_t refuse_while_capturing(cudaStream_t stream) {
  auto& all = Captures::the();
  const std::lock_guard lock(all.mutex);
  auto* capture = all.find(stream);
  if (!capture) return cudaSuccess;
  capture->valid = false;
  return cudaErrorStreamCaptureUnsupported;
}

}  // namespace lrnn::emulator

using namespace lrnn::emulator;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream || stream == cudaStreamLegacy) return answer(cudaErrorStreamCaptureUnsupported);
  auto& all = Captures::the();
  const std::lock_guard lock(all.mutex);
  auto& capture = all.of[stream];
  if (capture) return answer(cudaErrorIllegalState);
  capture = std::make_unique<Capture>();
  capture->id = ++all.last;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  std::unique_ptr<Capture> capture;
  {
    auto& all = Captures::the();
    const std::lock_guard lock(all.mutex);
    const auto found = all.of.find(stream);
    if (found == all.of.end()) return answer(cudaErrorIllegalState);
    capture = std::move(found->second);
    all.of.erase(found);
  }
  capture->undo();
  if (!capture->valid) return answer(cudaErrorStreamCaptureInvalidated);
  *graph = reinterpret_cast<cudaGraph_t>(new Graph(std::move(capture->graph)));
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}
// What comes before in the graph is not told: the nodes here are a list.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  auto& all = Captures::the();
  const std::lock_guard lock(all.mutex);
  const auto* capture = all.find(stream);
  if (capture && (graph || dependencies || edges || count)) return answer(cudaErrorNotSupported);
  *status = !capture         ? cudaStreamCaptureStatusNone
            : capture->valid ? cudaStreamCaptureStatusActive
                             : cudaStreamCaptureStatusInvalidated;
  if (capture && id) *id = capture->id;
  return cudaSuccess;
}
// Which calls a capture forbids in other threads; none here.
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(*mode, current);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes) return answer(cudaErrorNotSupported);
  *count = reinterpret_cast<const Graph*>(graph)->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*,
                                         size_t*) {
  return answer(cudaErrorNotSupported);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* runnable, cudaGraph_t graph,
                                          unsigned long long) {
  *runnable = reinterpret_cast<cudaGraphExec_t>(new Graph(*reinterpret_cast<const Graph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t runnable, cudaStream_t stream) {
  if (capturing(stream)) return answer(cudaErrorNotSupported);  // a graph in a graph
  const Turn turn(nullptr);
  for (const auto& node : reinterpret_cast<const Graph*>(runnable)->nodes) node();
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t runnable) {
  delete reinterpret_cast<Graph*>(runnable);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<Graph*>(graph);
  return cudaSuccess;
}

}  // extern "C"
