#include <atomic>
#include <chrono>

#include "tests/emulator/runtime/capture.h"
#include "tests/emulator/runtime/runtime.h"

// Streams and events. Everything is done when the call that asks for it returns, so a stream is no
// more than a handle, and an event a time.
namespace lrnn::emulator {
namespace {

struct Stream {
  unsigned flags = 0;
};

struct Event {
  using Clock = std::chrono::steady_clock;
  unsigned flags = 0;
  std::atomic<bool> recorded = false, captured = false;
  std::atomic<Clock::time_point> at{};
};

Event& of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

cudaError_t make_stream(cudaStream_t* stream, unsigned flags) {
  *stream = reinterpret_cast<cudaStream_t>(new Stream{flags});
  return cudaSuccess;
}

}  // namespace
}  // namespace lrnn::emulator

using namespace lrnn::emulator;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return make_stream(stream, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return make_stream(stream, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return make_stream(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete reinterpret_cast<Stream*>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return answer(refuse_while_capturing(stream));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return answer(refuse_while_capturing(stream)); }
// Nothing is left to wait for, but of captures: a second stream does not join one here.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const bool captured = of(event).captured;
  if (capturing(stream) == captured) return cudaSuccess;
  return answer(captured ? cudaErrorNotSupported : cudaErrorStreamCaptureIsolation);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  auto* made = new Event;
  made->flags = flags;
  *event = reinterpret_cast<cudaEvent_t>(made);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Event*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto& e = of(event);
  e.captured = capturing(stream);
  e.at = Event::Clock::now();
  e.recorded = true;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return answer(of(event).captured ? cudaErrorCapturedEvent : cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return cudaEventQuery(event); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const auto &a = of(from), &b = of(to);
  if (!a.recorded || !b.recorded || ((a.flags | b.flags) & cudaEventDisableTiming))
    return answer(cudaErrorInvalidResourceHandle);
  *milliseconds = std::chrono::duration<float, std::milli>(b.at.load() - a.at.load()).count();
  return cudaSuccess;
}

}  // extern "C"
