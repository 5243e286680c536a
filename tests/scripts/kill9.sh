#!/usr/bin/env bash
# kill -9 at any moment, resumed until done, ends with the same bytes as a run nobody disturbed.
# A checkpoint after every step makes many of the kills fall into the middle of writing one.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run=("$LRNN" train configs/tiny.yaml train.steps=60 train.checkpoint_every=1 train.keep=2 --quiet)

sums() {
  (cd "$1" && sha256sum metrics.jsonl checkpoints/step-00000060/{model,optimizer}.safetensors \
    checkpoints/step-00000060/state.json)
}

"${run[@]}" --out "$work/whole"
kills=0
for seed in 1 2 3; do
  RANDOM=$seed
  out="$work/killed-$seed" tries=0
  until [ -f "$out/result.json" ]; do
    "${run[@]}" --out "$out" --resume & process=$!
    # Longer and longer, so that it gets somewhere on a slow machine too.
    tries=$((tries + 1))
    sleep "$(awk "BEGIN { print ($RANDOM % 400 + 20 * $tries) / 1000 }")"
    kill -9 $process 2>/dev/null && kills=$((kills + 1))
    wait $process 2>/dev/null || true
    [ $kills -lt 300 ] || { echo "no end after $kills kills"; exit 1; }
  done
  if ! diff <(sums "$work/whole") <(sums "$out"); then
    echo "seed $seed: the resumed run differs"; exit 1
  fi
done
echo "$kills kills, same bytes"
[ $kills -ge 3 ] || { echo "too few kills to mean anything"; exit 1; }
