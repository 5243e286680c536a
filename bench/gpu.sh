#!/usr/bin/env bash
# Everything measured on a GPU, as JSON lines: BUILD/bench-delta_product.jsonl, BUILD/bench-gpu.jsonl (the other programs) and
# BUILD/accuracy-gpu.jsonl.
# Each program agrees with a definition before it times; one that does not ends this with code 1.
#   bench/gpu.sh [BUILD]
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
if [ ! -x "$build/delta_product_gpu_bench" ]; then
  printf 'bench-gpu: this build has no GPU programs\n  they are built where a GPU, nvcc and a CUDA LibTorch are found\n' >&2
  exit 2
fi
delta=$build/bench-delta_product.jsonl lines=$build/bench-gpu.jsonl accuracy=$build/accuracy-gpu.jsonl code=0
# The first line says what was measured where: scripts/tables.py prints it beside the numbers.
printf '{"commit":"%s","date":"%s","machine":"%s","command":"make bench-gpu"}\n' "$(git describe --always --dirty 2>/dev/null)" \
  "$(date -u +%F)" "$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1)" | tee "$delta" "$lines" >"$accuracy"
"$build/delta_product_gpu_bench" | tee -a "$delta" || code=1
for program in long_sequences_gpu_bench ops_gpu_bench train_gpu_bench; do
  "$build/$program" | tee -a "$lines" || code=1
done
# From the start of a process to the end of its first update, loading and recording included.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for config in chomsky/parity_delta_net_2 deltaproduct/S3_n2; do
  begin=$(date +%s%N)
  if "$build/lrnn" train "configs/$config.yaml" train.steps=1 train.eval_every=0 task.eval.samples=16 \
    --device cuda --out "$work/$(basename $config)" --quiet 2>"$work/why"; then
    printf '{"op": "process with one update", "config": "%s", "s": %s}\n' $config \
      "$(awk "BEGIN { print ($(date +%s%N) - $begin) / 1e9 }")" | tee -a "$lines"
  else
    printf '{"op": "process with one update", "skipped": "%s"}\n' "$(head -1 "$work/why" | tr -d '"')" | tee -a "$lines"
  fi
done
"$build/delta_product_accuracy" | tee -a "$accuracy" || code=1
grep -q keys "$accuracy" && python3 bench/accuracy_table.py <"$accuracy"
exit $code
