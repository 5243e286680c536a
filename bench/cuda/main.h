#pragma once
#include <cstdio>
#include <exception>

#include "training/memory.h"

namespace lrnn::bench {

// A whole program; an error is a line and exit code 2.
inline int bench_main(int argc, char** argv, int (*run)(int, char**)) {
  training::reuse_memory();  // as the program does
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}

}  // namespace lrnn::bench
