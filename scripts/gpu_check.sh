#!/usr/bin/env bash
# Every GPU kernel under compute-sanitizer: memcheck (addresses), racecheck (shared memory), initcheck (memory that
# nobody wrote) and synccheck (barriers).
#   scripts/gpu_check.sh [BUILD] [TOOL ...]
# Writes BUILD/gpu-check.txt. Exit code 0: nothing found; 1: something was; 2: it cannot be run here.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
tools=("${@:2}")
[ ${#tools[@]} -gt 0 ] || tools=(memcheck racecheck initcheck synccheck)

cannot() {
  printf 'gpu-check: %s\n  %s\n' "$1" "$2" >&2
  exit 2
}

sanitizer=
for candidate in compute-sanitizer "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" \
  "$(dirname "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")/compute-sanitizer"; do
  if command -v "$candidate" >/dev/null; then
    sanitizer=$(command -v "$candidate")
    break
  fi
done
[ -n "$sanitizer" ] || cannot "compute-sanitizer was not found" \
  "it comes with the CUDA toolkit (package cuda-sanitizer): put it into PATH, or name the toolkit in CUDA_HOME"
[ -x "$build/cuda_test" ] || cannot "$build/cuda_test does not exist" "\`make build\` makes it where a GPU and nvcc are"

# One process works on one case at a time and keeps one core busy; the cases are shared out over several.
shards=$(($(nproc) / 2))
[ "$shards" -lt 8 ] || shards=8
[ "$shards" -gt 0 ] || shards=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Each has threads of its own for the definitions: few, and who waits for one must not spin.
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=2

# in_shards NAME COMMAND ...: its outputs are $work/NAME.*, its exit code is 0 if all of theirs are.
in_shards() {
  local name=$1 code=0 i pids=()
  for ((i = 0; i < shards; ++i)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "${@:2}" >"$work/$name.$i" 2>&1 &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i" || code=$?; done
  return $code
}
tests=("$build/cuda_test" --gtest_filter='EveryKernelOnGpu*')

# First without a sanitizer: wrong results are not its business, and skipped tests check nothing.
in_shards plain "${tests[@]}"
code=$?
if grep -q '^\[  SKIPPED \]' "$work"/plain.*; then
  cannot "the GPU tests cannot be run here: $(grep -h -m1 -B1 '^\[  SKIPPED \]' "$work"/plain.* | head -1)" "a GPU and its driver are needed"
fi
report=$build/gpu-check.txt
{
  echo "version    $(git describe --always --dirty 2>/dev/null || echo unknown)"
  echo "device     $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo unknown)"
  echo "sanitizer  $("$sanitizer" --version | grep -io 'version [0-9.]*' | head -1)"
  echo "tests      $(cat "$work"/plain.* | grep -c '^\[       OK \]') passed, $(cat "$work"/plain.* | grep -c '^\[  FAILED  \] .*ms)$') failed without it"
} | tee "$report"
[ $code -eq 0 ] || cat "$work"/plain.* | tee -a "$report"

for tool in "${tools[@]}"; do
  begin=$SECONDS
  # A tensor each in memory of its own, or memcheck would take a neighbour's for the tensor's. One kernel at a
  # time: racecheck once lost track of a launch, and some start before the one before them has ended.
  PYTORCH_NO_CUDA_MEMORY_CACHING=1 CUDA_LAUNCH_BLOCKING=1 in_shards "$tool" \
    "$sanitizer" --tool "$tool" --error-exitcode 99 "${tests[@]}" --gtest_brief=1
  # The last line of each counts, whether errors or hazards, and warnings too, which leave the code at 0. Racecheck
  # reports the split sums of cuBLAS's own kernels (nvjet_*): those are counted apart. (Excluded by name they made it fail.)
  ended=$(cat "$work/$tool".* | grep -c 'SUMMARY:')
  found=$(cat "$work/$tool".* | sed -n 's/.*SUMMARY: *\([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n + 0 }')
  others=$(cat "$work/$tool".* | grep -c 'Race reported between .* at nvjet_')
  printf '%-10s %d found, %d of them in cuBLAS, %d of %d processes ended, %d s\n' "$tool" "${found:-0}" "$others" \
    "$ended" "$shards" $((SECONDS - begin)) | tee -a "$report"
  if [ "$ended" -ne "$shards" ] || grep -q '^\[  FAILED  \]' "$work/$tool".* || [ "${found:-1}" -ne "$others" ]; then
    code=1
    cat "$work/$tool".* | head -c 60000 >>"$report"
    cat "$work/$tool".* | grep '^========= ' | head -40
  fi
done
echo "report: $report"
[ $code -eq 0 ] || exit 1
