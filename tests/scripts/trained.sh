#!/usr/bin/env bash
# Trained models of tasks that follow an automaton: run reads their words, verify says from which
# length on they err, and a compiled model can be trained further.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $1"; exit 1; }
expect() { [ "$2" = "$3" ] || fail "$1: got '$2', not '$3'"; }
code() { local c=0; "$@" >"$work/out" 2>"$work/err" || c=$?; echo $c; }

# Twenty steps teach nothing: it errs, and the length is told.
"$LRNN" train configs/tiny.yaml --out "$work/tiny" --quiet >/dev/null
expect "answers" "$(printf '1011\n0\n' | "$LRNN" run "$work/tiny" | grep -c '^[01]$')" 2
expect "after every bit" "$(echo 10110 | "$LRNN" run "$work/tiny" --every | wc -w | tr -d ' ')" 5
expect "an untrained model" "$(code "$LRNN" verify "$work/tiny" --tokens 2000)" 1
grep -q 'first wrong at length [0-9]' "$work/out" || fail "no first wrong length"
expect "against a named automaton" "$(code "$LRNN" verify "$work/tiny" --tokens 2000 --json \
  --regex '0*(10*10*)*' --alphabet 01)" 1
grep -q '"first_wrong":{"kind"' "$work/out" || fail "no first wrong word in the JSON"
expect "an automaton over other letters" "$(code "$LRNN" verify "$work/tiny" --regex 'a*' --alphabet a)" 2
grep -q "does not read the automaton's symbol 'a'" "$work/err" || fail "the symbol is not named"
sed 's/name: parity/name: recall/; /train: {length/d; /eval: {length/d' configs/tiny.yaml >"$work/recall.yaml"
"$LRNN" train "$work/recall.yaml" train.steps=1 train.batch=2 --out "$work/recall" --quiet >/dev/null 2>&1 ||
  fail "recall does not train"
expect "a task without an automaton" "$(code "$LRNN" verify "$work/recall")" 2
grep -q "has no automaton of its own" "$work/err" || fail "it is not said that there is none"

# Fine-tuning: a compiled model is right before and after some steps on its own task, gentle or rough,
# for that has nothing to teach it. The task's own automaton is what it is compared with: it is no
# longer certified. tuned.sh has more.
"$LRNN" compile --group S3 -o "$work/s3" >/dev/null
"$LRNN" train --from "$work/s3" train.steps=3 train.batch=4 train.lr=1e-6 --out "$work/soft" --quiet >"$work/out"
grep -q 'accuracy 1.0000' "$work/out" || fail "gentle steps broke the model: $(cat "$work/out")"
expect "gently tuned" "$(code "$LRNN" verify "$work/soft" --tokens 2000)" 0
grep -q 'nothing is proved' "$work/out" || fail "a tuned model is not said to be trained"
expect "gently tuned, against its group" "$(code "$LRNN" verify "$work/soft" --group S3 --tokens 500)" 0
expect "run of a tuned model" "$(printf '1 1\n' | "$LRNN" run "$work/soft")" e
"$LRNN" train "$work/soft/config.yaml" --out "$work/soft" --resume --quiet >/dev/null ||
  fail "a run that began with --from cannot be resumed"
"$LRNN" train --from "$work/s3" train.steps=20 train.batch=4 train.lr=0.5 --out "$work/rough" --quiet >/dev/null
expect "roughly tuned" "$(code "$LRNN" verify "$work/rough" --tokens 2000)" 0
# Rough steps towards other answers do break it: at that rate it learns nothing.
"$LRNN" compile --example parity -o "$work/parity" >/dev/null
"$LRNN" train --from "$work/parity" task.example= 'task.regex=(0|10*1)*' task.alphabet=01 train.steps=3 \
  train.batch=4 train.lr=0.5 --out "$work/broken" --quiet >/dev/null
expect "roughly taught, against what it was" "$(code "$LRNN" verify "$work/broken" --example parity --tokens 2000)" 1

expect "--from nothing" "$(code "$LRNN" train --from "$work/none" --out "$work/x")" 2
expect "--from with --resume" "$(code "$LRNN" train --from "$work/s3" --resume --out "$work/x")" 2
expect "another shape" "$(code "$LRNN" train configs/tiny.yaml --from "$work/s3" --out "$work/x")" 2
[ ! -e "$work/x" ] || fail "a folder was left behind"
expect "no config" "$(code "$LRNN" train)" 2
echo ok
