#pragma once
#include <benchmark/benchmark.h>

#include "training/memory.h"

namespace lrnn {

// A whole program of Google Benchmark; `add` registers what it has.
template <class Add> int bench_main(int argc, char** argv, Add add) {
  training::reuse_memory();  // as the program does
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  add();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace lrnn
