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

# Pages that are kept short.
[ "$(wc -l <README.md)" -le 120 ] || fail "README.md has $(wc -l <README.md) lines, more than 120"
[ "$(wc -l <docs/kernels.md)" -le 150 ] || fail "docs/kernels.md has $(wc -l <docs/kernels.md) lines, more than 150"

[ $failures = 0 ] && echo "pages: all is well"
