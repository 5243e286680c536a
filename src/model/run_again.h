#pragma once
#include "model/block.h"

namespace lrnn::model {

// block.forward(in, state, context), of which nothing is kept for backward but `in`: backward runs
// the block again, and with it its own backward. The same bits, for the same kernels run on the
// same numbers. The state that comes out has no derivative.
Stream run_again_in_backward(const std::shared_ptr<Block>& block, const Stream& in,
                             mixers::State& state, const Context& context);

}  // namespace lrnn::model
