#pragma once
#include <memory>

namespace lrnn::ops::cuda {

// While the result lives, this thread's work goes to a stream that no other thread has. LibTorch's
// own pool gives the 33rd who asks the stream of the first: what one of them launches while the
// other records would become part of the recording.
std::shared_ptr<void> own_stream();

}  // namespace lrnn::ops::cuda
