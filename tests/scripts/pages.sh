#!/usr/bin/env bash
# Pages that are written by the program and by scripts are up to date; docs/reference.md is compared in keys.sh.
# Run from the repository root.
. tests/scripts/lib/as_user.sh

LRNN=$lrnn expect 0 "" scripts/commands.py --check
expect 0 "" scripts/api.py --check
expect 0 "" scripts/python_api.py --check
expect 0 "" scripts/tables.py --check
expect 0 "" scripts/house.py  # the walks of docs/design.md lead to files that are there
says "CPU walk"

# The checks can fail: a page of an older program, a number that was not measured.
copy=$work/copy
mkdir -p "$copy/src" && cp -r scripts docs results python README.md "$copy" && cp -r src/ops "$copy/src"
sed -i 's/--resume/--resumed/' "$copy/docs/commands/train.md"
LRNN=$lrnn expect 1 "train.md" "$copy/scripts/commands.py" --check train
sed -i 's/torch::Tensor/Tensor/' "$copy/docs/api.md"
expect 1 "docs/api.md is out of date" "$copy/scripts/api.py" --check
sed -i 's/a gate of 1 without it/no gate without it/' "$copy/python/lrnn/ops.py"
expect 1 "docs/python_api.md is out of date" "$copy/scripts/python_api.py" --check
sed -i 's/^\(| 8,4096,1,16,128,128 | fast | \)0/\19/' "$copy/docs/performance.md"
expect 1 "docs/performance.md" "$copy/scripts/tables.py" --check

# Runs become an archive: the same bytes twice, without weights; with --add, beside those that are there.
runs=$work/runs
for seed in 1 2; do
  mkdir -p "$runs/T/seed$seed/checkpoints"
  for name in config.yaml info.json result.json checkpoints/w.safetensors; do echo '{}' >"$runs/T/seed$seed/$name"; done
  printf '{"kind":"train","step":50,"length":2,"accuracy":0.5,"loss":1}\n{"kind":"eval","step":50}\n{"kind":"train","step":100,"length":3,"accuracy":1,"loss":0}\n' \
    >"$runs/T/seed$seed/metrics.jsonl"
done
echo '{"evaluation":{"right":3,"count":4,"by_length":[{"length":9,"right":3,"count":4}]}}' >"$runs/T/seed1/far.json"
expect 0 "" "$copy/scripts/archive.py" tried "$runs"
says "2 runs"
archive=$copy/results/tried.tar.gz
sum=$(md5sum <"$archive") && touch "$runs/T/seed1/config.yaml" && expect 0 "" "$copy/scripts/archive.py" tried "$runs"
equal "an archive made again" "$(md5sum <"$archive")" "$sum"
equal "what is kept of a run" "$(tar -tzf "$archive" | grep 'seed1/[a-z]' | sed 's/.*seed1.//' | sort | tr '\n' ' ')" \
  "config.yaml evaluations.jsonl far.json growth.csv info.json result.json "
equal "longer words" "$(tar -xzOf "$archive" tried/T/seed1/far.json)" '{"length": 9, "right": 3, "count": 4}'
equal "growing words" "$(tar -xzOf "$archive" tried/T/seed2/growth.csv | tail -1)" "100,3,1.0000,0.0000"
mkdir "$work/more" && mv "$runs/T/seed2" "$work/more/seed3"
expect 0 "" "$copy/scripts/archive.py" tried "$work/more" --add
equal "runs after --add" "$(tar -tzf "$archive" | grep -c result.json)" 3
expect 2 "no run in" "$copy/scripts/archive.py" tried "$work/more/seed3/checkpoints"
expect 2 "leave out --add" "$copy/scripts/archive.py" never "$runs" --add

# Pages that are kept short.
[ "$(wc -l <README.md)" -le 120 ] || fail "README.md has $(wc -l <README.md) lines, more than 120"
[ "$(wc -l <docs/kernels.md)" -le 150 ] || fail "docs/kernels.md has $(wc -l <docs/kernels.md) lines, more than 150"

[ $failures = 0 ] && echo "pages: all is well"
