#!/usr/bin/env bash
# Runs a program with the GPU that is not there (docs/emulator.md): its kernels' PTX runs on the CPU.
#   scripts/without_gpu.sh PROGRAM [ARGUMENTS]
#   BUILD=build-other scripts/without_gpu.sh build-other/cuda_test --gtest_filter='Mlstm*'
set -u
build=${BUILD:-$(cd "$(dirname "$0")/.." && pwd)/build}
for library in libcudart.so.13 libtorch_cuda.so; do
  [ -e "$build/emulator/$library" ] || {
    printf 'without_gpu: %s does not exist\n  `make cuda` builds it where nvcc is\n' "$build/emulator/$library" >&2
    exit 2
  }
done
[ $# -gt 0 ] || { printf 'without_gpu: no program was named\n  scripts/without_gpu.sh build/cuda_test --gtest_filter=EveryKernel*\n' >&2; exit 2; }
# The emulator has threads of its own, one a core.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
LD_PRELOAD=$build/emulator/libcudart.so.13:$build/emulator/libtorch_cuda.so${LD_PRELOAD:+:$LD_PRELOAD} exec "$@"
