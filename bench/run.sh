#!/usr/bin/env bash
# Runs every benchmark program of a build folder (each agrees with its definition before it times)
# and, where a Python with torch is found, the PyTorch baselines beside them.
set -euo pipefail
build=${1:-build}
for source in bench/*_bench.cpp; do
  program=$build/$(basename "$source" .cpp)
  echo "== $(basename "$program")"
  "$program" --benchmark_counters_tabular=true
done
if [ -f bench/compare.sh ]; then
  echo "== against plain PyTorch"
  bash bench/compare.sh "$build"
fi
