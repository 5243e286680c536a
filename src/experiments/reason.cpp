#include "experiments/reason.h"

#include <c10/util/Exception.h>

#include <new>

#include "base/error.h"

namespace lrnn::experiments {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// LibTorch goes on with a list of processes and advice about its allocator.
std::string of_memory(const std::string& text) {
  const std::string last = "is free.";
  const auto at = text.find(last);
  return at == std::string::npos ? text : text.substr(0, at + last.size());
}

}  // namespace

Reason reason_of(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return {ours->what(), ours->hint()};
  if (const auto* full = dynamic_cast<const c10::OutOfMemoryError*>(&error))
    return {
        of_memory(first_line(full->what_without_backtrace())),
        "run fewer at once (--jobs), or a smaller batch; nvidia-smi shows who else holds memory"};
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error))
    return {first_line(torch->what_without_backtrace()),
            "this came from LibTorch; `lrnn doctor` checks it"};
  if (dynamic_cast<const std::bad_alloc*>(&error))
    return {"there is not enough memory", "try a smaller batch, or shorter sequences"};
  return {first_line(error.what()), ""};
}

}  // namespace lrnn::experiments
