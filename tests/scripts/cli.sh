#!/usr/bin/env bash
# Drives the built program ($LRNN) as a user would. Run from the repository root.
. tests/scripts/lib/as_user.sh

# --- help fits on a screen, shows an example, and is no error
for words in "" demo reproduce train eval spectrum curves show check compile run verify explain export import tasks "tasks show" "tasks export" mixers doctor; do
  expect 0 "" "$lrnn" $words --help
  lines=$(wc -l <"$work/out")
  [ "$lines" -le 40 ] || fail "help of '$words' has $lines lines"
  grep -q Example "$work/out" || fail "help of '$words' has no example"
  [ -z "$words" ] || grep -q -- --json "$work/out" || fail "'$words' has no --json"
done
expect 0 "" "$lrnn" --version

# --- mistakes are one sentence with a hint, and exit code 2
expect 2 "no command" "$lrnn"
expect 2 "did you mean 'train'" "$lrnn" trian
expect 2 "did you mean '--resume'" "$lrnn" train --resmue
expect 2 "there is no option '--nonsense'" "$lrnn" doctor --nonsense
expect 2 "no config was given" "$lrnn" train
expect 2 "no/such.yaml" "$lrnn" show no/such.yaml
expect 2 "did you mean 'steps'" "$lrnn" show configs/tiny.yaml train.stesp=3
expect 2 "must be a whole number" "$lrnn" train configs/tiny.yaml train.steps=many --out "$work/never"
CUDA_VISIBLE_DEVICES='' expect 2 "no CUDA" "$lrnn" train configs/tiny.yaml --device cuda --out "$work/never"
expect 2 "cpu or cuda" "$lrnn" train configs/tiny.yaml --device tpu --out "$work/never"
expect 2 "neither a run nor a checkpoint" "$lrnn" eval "$work"
expect 2 "nonsense" "$lrnn" tasks show nonsense
expect 2 "" "$lrnn" tasks show parity --split test
expect 2 "--jobs: 0x is not a number" "$lrnn" reproduce chomsky --jobs 0x
expect 2 "--jobs: -1 is too small" "$lrnn" reproduce chomsky --jobs -1
expect 2 "--seed: -1" "$lrnn" tasks show parity --seed -1
expect 2 "--count: few is not a number" "$lrnn" tasks show parity --count few
expect 2 "--count: 1.5 is not a number that it takes" "$lrnn" tasks show parity --count 1.5
expect 2 "--json takes no value" "$lrnn" tasks --json=x
expect 2 "--samples: inf is not a number that it takes" "$lrnn" eval runs/x --samples inf
[ ! -e "$work/never" ] || fail "a run that cannot start left a folder"
sed 's/^  steps:/  stepps:/' configs/tiny.yaml >"$work/bad.yaml"
line=$(grep -n stepps "$work/bad.yaml" | cut -d: -f1)
expect 2 "bad.yaml:$line: train.stepps is not a key" "$lrnn" train "$work/bad.yaml"
for bad in 5:3 0:4 x 3: 3:4x; do expect 2 "--lengths must" "$lrnn" eval "$work" --lengths $bad; done

# --- lists
expect 0 "" "$lrnn" tasks; grep -q parity "$work/out" || fail "tasks does not list parity"
expect 0 "" "$lrnn" tasks --json; json tasks
expect 0 "" "$lrnn" mixers; grep -q delta_product "$work/out" || fail "mixers does not list delta_product"
expect 0 "" "$lrnn" mixers --json; json mixers
expect 0 "" "$lrnn" tasks show parity --seed 1 --split eval --count 3
[ "$(wc -l <"$work/out")" = 3 ] || fail "tasks show printed $(wc -l <"$work/out") lines, not 3"
expect 0 "" "$lrnn" tasks show parity train.length=9 --seed 1 --count 4 --json
python3 - "$work/out" <<'PY' || fail "tasks show --json"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert len(lines) == 4
for example in lines:
    assert set(example) == {"input", "target", "length"} and example["length"] == 9
    assert len(example["input"]) == len(example["target"])
    assert all(t >= -1 for t in example["target"])
PY
"$lrnn" tasks show parity --count 100000 2>"$work/err" | head -1 >/dev/null
[ ! -s "$work/err" ] || fail "a closed pipe is no error: $(cat "$work/err")"
"$lrnn" tasks >/dev/full 2>"$work/err"; [ $? = 2 ] || fail "a full disk went unnoticed"

# --- words of a group to a file, and training from it
expect 0 "" "$lrnn" tasks export S3_only_swaps --length 4 --count 1000 --seed 1 --out "$work/data" --json; json export
[ "$(value 'd["sequences"]')" = 256 ] || fail "there are 4^4 words of four swaps"
file="$work/data/S3_only_swaps=4.csv"
[ "$(head -1 "$file")" = seed,input,target ] || fail "header of $file"
[ "$(sort -u "$file" | wc -l)" = 257 ] || fail "words are not distinct"
expect 0 "" "$lrnn" train configs/tiny.yaml task.name=group task.group=S3_only_swaps train.steps=3 \
  task.train.length=4 "task.train.file=$file" task.eval.length=4 "task.eval.file=$file" task.eval.samples=2 \
  --out "$work/from file" --quiet --json; json "train from a file"

# --- a config, and the model it makes
expect 0 "" "$lrnn" show configs/tiny.yaml
expect 0 "" "$lrnn" show configs/tiny.yaml train.steps=77 --json; json show
[ "$(value 'd["config"]["train"]["steps"]')" = 77 ] || fail "show does not resolve overrides"
[ "$(value 'd["parameters"] == sum(t["parameters"] for t in d["tensors"])')" = True ] || fail "parameter count"

# --- train, look, go on
run="$work/run with spaces"
expect 0 "" "$lrnn" train configs/tiny.yaml train.steps=20 train.threads=1 --out "$run" --quiet --json; json train
trained=$(value 'd["evaluation"]["accuracy"]')
[ ! -s "$work/err" ] || fail "--quiet said: $(cat "$work/err")"
expect 0 "" "$lrnn" train configs/tiny.yaml train.stop_at=0.01 --out "$work/early" --quiet
grep -qF "10 steps were not needed" "$work/out" || fail "nobody says that train.stop_at ended a run: $(cat "$work/out")"
expect 2 "" "$lrnn" train configs/tiny.yaml train.steps=20 --out "$run" --quiet
expect 0 "" "$lrnn" eval "$run" --json; json eval
[ "$(value 'd["evaluation"]["accuracy"]')" = "$trained" ] || fail "eval differs from the end of training"
[ -s "$run/eval/length.csv" ] || fail "no CSV"
python3 -c "import sys, xml.dom.minidom as x; x.parse(sys.argv[1])" "$run/figures/length.svg" || fail "length.svg"
expect 0 "" "$lrnn" eval "$run" --lengths 3:80 --samples 64
expect 2 "GPU kernels" "$lrnn" eval --accuracy exact,fast "$run"
expect 2 "--accuracy" "$lrnn" eval "$run" --accuracy exact,quick
expect 2 "--kernel is called --accuracy now" "$lrnn" eval "$run" --kernel exact
expect 0 "" "$lrnn" spectrum "$run" --json; json spectrum
expect 0 "" "$lrnn" spectrum "$run"
python3 -c "import sys, xml.dom.minidom as x; x.parse(sys.argv[1])" "$run/figures/spectrum.svg" || fail "spectrum.svg"

words='0101\n1\n\n1101110\n'
for every in "" --every; do
  printf "$words" | "$lrnn" run "$run" $every >"$work/whole" || fail "run"
  printf "$words" | "$lrnn" run "$run" --step $every >"$work/steps" 2>"$work/err" || fail "run --step"
  cmp -s "$work/whole" "$work/steps" || fail "one symbol at a time the answers are others"
  grep -q "^12 symbols, .* microseconds each" "$work/err" || fail "run --step does not say what a symbol took"
done

for every in "" --every; do
  for step in "" --step; do
    printf "$words" | "$lrnn" run "$run" $every >"$work/plain"
    printf "$words" | "$lrnn" run "$run" $every $step --json 2>/dev/null >"$work/out" || fail "run --json"
    python3 - "$work/plain" "$work/out" <<'PY' || fail "run --json $every $step"
import json, sys
plain, objects = (open(name).read().split("\n") for name in sys.argv[1:])
assert len(plain) == len(objects) == 5
for line, text in zip(plain[:-1], objects[:-1]):
    found = json.loads(text)
    assert len(found) == 1
    assert line == (found["answer"] if "answer" in found else " ".join(found["answers"])), text
PY
  done
done

# --- Ctrl-C saves, says how to go on, and ends with 130
"$lrnn" train configs/tiny.yaml train.steps=1000000 train.eval_every=0 --out "$work/long" >"$work/out" 2>"$work/err" &
child=$!
for _ in $(seq 600); do grep -q "^step" "$work/err" && break; sleep 0.1; done
kill -INT $child; wait $child; code=$?
[ $code = 130 ] || fail "an interrupted run ended with $code"
grep -q -- "--resume" "$work/err" || fail "an interrupted run does not say how to go on"
expect 0 "" "$lrnn" spectrum "$work/long" --json; json "spectrum of an interrupted run"

# --- the machine
expect 0 "" "$lrnn" doctor
expect 0 "" "$lrnn" doctor --cases 20 --seed 9 --json; json doctor
[ "$(value 'd["ok"], d["random"]["first_seed"], d["random"]["cases"], d["random"]["wrong"]')" = "True 9 20 []" ] || fail "doctor"
expect 2 "--cases" "$lrnn" doctor --cases -1

[ $failures = 0 ] && echo "cli: all is well"
