#include "tests/automata/fuzz_readers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lrnn::automata::fuzz_graph({reinterpret_cast<const char*>(data), size});
  return 0;
}
