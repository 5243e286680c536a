#!/usr/bin/env bash
# Checkpoints of a model that is not small, on a disk that is slow: training goes on while one is written, kill -9 in the
# middle of writing loses nothing, and a disk that fails is one sentence and exit code 2.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0

# The disk: fsync of a safetensors file takes SLOW milliseconds, and fails if FULL is set.
cat > "$work/disk.c" <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int fsync(int fd) {
  char link[64], path[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n > 0 && strstr(path, "optimizer.safetensors")) {
    if (getenv("SLOW")) usleep(1000 * atoi(getenv("SLOW")));
    if (getenv("FULL")) return errno = ENOSPC, -1;
  }
  return (int)syscall(SYS_fsync, fd);
}
C
${CC:-cc} -shared -fPIC -o "$work/disk.so" "$work/disk.c"
disk="LD_PRELOAD=$work/disk.so"
run=("$LRNN" train configs/tiny.yaml model.width=256 model.layers=2 model.mlp.hidden=512 train.steps=24 train.checkpoint_every=4 train.eval_every=12
  train.log_every=1 train.batch=4 train.threads=1 train.keep=9 --quiet)

sums() {
  (cd "$1" && sha256sum metrics.jsonl checkpoints/step-*/{model,optimizer}.safetensors checkpoints/step-*/state.json)
}
# The checkpoint that is being written, as a number, or nothing; and the last step in metrics.jsonl.
unfinished() { ls -d "$1"/checkpoints/.unfinished-step-* 2>/dev/null | sed 's/.*step-0*//' | head -1; }
last_step() { tail -1 "$1/metrics.jsonl" 2>/dev/null | sed -n 's/.*"step":\([0-9]*\).*/\1/p'; }

"${run[@]}" --out "$work/whole"
size=$(du -sb "$work/whole/checkpoints/step-00000024" | cut -f1)
[ "$size" -gt 4500000 ] || { echo "only $size bytes: such checkpoints are written at once"; exit 1; }

# Training goes on: steps are logged that come after the one being written.
env "$disk" SLOW=700 "${run[@]}" --out "$work/slow" & process=$!
ahead=0
while kill -0 $process 2>/dev/null; do
  writing=$(unfinished "$work/slow" || true) step=$(last_step "$work/slow" || true)
  if [ -n "$writing" ] && [ -n "$step" ] && [ "$step" -gt "$writing" ]; then ahead=$((ahead + 1)); fi
  sleep 0.02
done
wait $process
[ $ahead -gt 0 ] || { echo "training waited for its checkpoints"; exit 1; }
diff <(sums "$work/whole") <(sums "$work/slow") || { echo "a slow disk changed the run"; exit 1; }

# Killed while a checkpoint is half there, and again. In between it comes as far as another one.
wait_for() {  # wait_for PROCESS PATTERN: until there is such a file, or the process has ended
  while kill -0 "$1" 2>/dev/null && ! compgen -G "$2" > /dev/null; do sleep 0.01; done
}
out="$work/killed" kills=0
for next in 04 08 12; do
  env "$disk" SLOW=60000 "${run[@]}" --out "$out" --resume & process=$!
  wait_for $process "$out/checkpoints/.unfinished-step-*/optimizer.safetensors.partial"
  if kill -9 $process 2>/dev/null; then kills=$((kills + 1)); fi
  wait $process 2>/dev/null || true
  "${run[@]}" --out "$out" --resume & process=$!
  wait_for $process "$out/checkpoints/step-000000$next"
  kill -9 $process 2>/dev/null || true
  wait $process 2>/dev/null || true
done
[ $kills -gt 0 ] || { echo "nothing was killed"; exit 1; }
"${run[@]}" --out "$out" --resume
diff <(sums "$work/whole") <(sums "$out") || { echo "the killed run differs"; exit 1; }

# An error of the thread that writes is an error of the run.
code=0
env "$disk" FULL=1 SLOW=200 "${run[@]}" --out "$work/full" 2> "$work/said" || code=$?
[ $code -eq 2 ] && grep -q 'optimizer.safetensors: the disk is full' "$work/said" ||
  { echo "exit $code:"; cat "$work/said"; exit 1; }
[ -z "$(unfinished "$work/full" || true)" ] || { echo "the half-made checkpoint is still there"; exit 1; }
"${run[@]}" --out "$work/full" --resume
diff <(sums "$work/whole") <(sums "$work/full") || { echo "the run after the full disk differs"; exit 1; }
echo "$kills kills, $ahead looks at a run that was ahead of its checkpoint"
