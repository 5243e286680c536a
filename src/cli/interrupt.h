#pragma once

namespace lrnn::cli {

// From here on the first Ctrl-C (or SIGTERM) only raises a flag, so that the work can stop where
// nothing is lost; the second one ends the program as usual.
void watch_interrupts();
bool interrupted();

}  // namespace lrnn::cli
