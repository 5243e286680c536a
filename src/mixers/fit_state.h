#pragma once
#include "mixers/mixer.h"

namespace lrnn::mixers {

// An empty state becomes one of `tensors` undefined ones; any other number is refused.
inline void fit_state(State& state, size_t tensors, const char* mixer) {
  if (state.empty()) state.resize(tensors);
  check(state.size() == tensors, mixer, ": the state has ", state.size(), " tensors, not ",
        tensors);
}

}  // namespace lrnn::mixers
