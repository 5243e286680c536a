#pragma once

namespace lrnn::training {

// Whether oneDNN can use the processor's matrix tiles (AMX). Some virtual machines announce tiles
// but hide how large they are; oneDNN then leaves them unconfigured and the program dies of an
// illegal instruction at the first bfloat16 product.
bool tiles_work();

}  // namespace lrnn::training
