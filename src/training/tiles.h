#pragma once

namespace lrnn::training {

// Whether the matrix tiles (AMX) that the processor announces can be used. Some virtual machines
// announce them, grant them and then kill the program at the first instruction.
bool tiles_work();

}  // namespace lrnn::training
