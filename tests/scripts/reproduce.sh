#!/usr/bin/env bash
# lrnn reproduce: one run fails and the others go on; killed with -9 it picks up to the same bytes;
# what is done is not run again; shortened results say so wherever they are shown.
. tests/scripts/lib/as_user.sh
set -eo pipefail
small=(model.width=16 model.layers=1 model.mixer.heads=2 model.mixer.key_dim=8 model.mixer.value_dim=8
  model.mlp.hidden=16 train.batch=8 train.checkpoint_every=5 train.log_every=5 task.eval.samples=64)
# 40 steps each of DeltaNet's two parity cells, two seeds.
command=("$lrnn" reproduce chomsky "${small[@]}" --only parity,delta_net --seeds 2 --scale 0.002 --jobs 2 --quiet)
reproduce() { "${command[@]}" --out "$@"; }
sums() { (cd "$1" && find . -name metrics.jsonl -o -path "*/step-00000040/model.safetensors" | sort | xargs sha256sum); }

"$lrnn" reproduce --list >"$work/list"
grep -q parity_delta_net_2 "$work/list" || fail "--list does not show the cells"
"$lrnn" reproduce --list --json | python3 -m json.tool >/dev/null || fail "--list --json"

# --- undisturbed
reproduce "$work/whole" --json >"$work/json"
python3 - "$work/json" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["shortened"] and "SHORTENED" in d["warning"] and len(d["cells"]) == 2, d
for cell in d["cells"]:
    assert cell["seeds"] == 2 and cell["seconds"] > 0 and cell["published"]["best"] is not None
    for run in cell["runs"]:
        assert run["done"] and run["lengths"] and run["training"], run
PY
suite="$work/whole/chomsky-scale0.002"
for file in table.md report.html table.json; do
  grep -q SHORTENED "$suite/$file" || fail "$file does not say that it is shortened"
done
[ "$(grep -c shortened "$suite/table.csv")" = 2 ] || fail "table.csv does not say shortened in each line"
! grep -qE 'src=|href=' "$suite/report.html" || fail "report.html is not self-contained"
grep -q '<svg' "$suite/report.html" || fail "report.html has no figures"

# --- what is done is left alone
before=$(find "$suite" -name train.log -printf '%p %T@\n' | sort)
reproduce "$work/whole" >"$work/text"
[ "$before" = "$(find "$suite" -name train.log -printf '%p %T@\n' | sort)" ] || fail "finished runs were run again"
grep -q SHORTENED "$work/text" || fail "the terminal does not say that it is shortened"

# --- one fails (its folder holds another run), the others go on
"$lrnn" train configs/tiny.yaml train.steps=1 --quiet --out "$work/broken/chomsky-scale0.002/parity_delta_net/seed42" >/dev/null
code=0; reproduce "$work/broken" >"$work/text" || code=$?
[ $code = 1 ] || fail "a failed run ended with $code, not 1"
grep -q "failed: parity, DeltaNet \[0,1\], seed 42: .*is not the config given now" "$work/text" || fail "$(cat "$work/text")"
grep -q "1 of 2" "$work/text" && grep -q "2 of 2" "$work/text" || fail "the others did not go on"

# --- kill -9 until it is done; longer and longer, so that it gets there on a slow machine too
RANDOM=1 kills=0
until [ "$(find "$work/killed" -name length.json 2>/dev/null | wc -l)" = 4 ]; do
  # The program itself, not a shell around it, is what gets killed.
  "${command[@]}" --out "$work/killed" >/dev/null 2>&1 & process=$!
  sleep "$(awk "BEGIN { print ($RANDOM % 1000 + 500 * $kills + 500) / 1000 }")"
  kill -9 $process 2>/dev/null && kills=$((kills + 1))
  wait $process 2>/dev/null || true
  [ $kills -lt 100 ] || fail "no end after $kills kills"
done
reproduce "$work/killed" >/dev/null
diff <(sums "$suite") <(sums "$work/killed/chomsky-scale0.002") || fail "after $kills kills the runs differ"

# --- Ctrl-C saves and says so
"${command[@]}" --out "$work/stopped" train.steps=100000000 >/dev/null 2>"$work/err" & process=$!
sleep 3; kill -INT $process; code=0; wait $process || code=$?
[ $code = 130 ] || fail "interrupted, it ended with $code"
echo "reproduce: all is well ($kills kills)"
