#!/usr/bin/env bash
# Trained models of tasks that follow an automaton: run reads their words, verify says from which
# length on they err, and a compiled model can be trained further.
. tests/scripts/lib/as_user.sh
set -eo pipefail

# Twenty steps teach nothing: it errs, and the length is told.
"$lrnn" train configs/tiny.yaml --out "$work/tiny" --quiet >/dev/null
equal "answers" "$(printf '1011\n0\n' | "$lrnn" run "$work/tiny" | grep -c '^[01]$')" 2
equal "after every bit" "$(echo 10110 | "$lrnn" run "$work/tiny" --every | wc -w | tr -d ' ')" 5
equal "an untrained model" "$(code "$lrnn" verify "$work/tiny" --tokens 2000)" 1
grep -q 'first wrong at length [0-9]' "$work/out" || fail "no first wrong length"
equal "against a named automaton" "$(code "$lrnn" verify "$work/tiny" --tokens 2000 --json \
  --regex '0*(10*10*)*' --alphabet 01)" 1
grep -q '"first_wrong":{"kind"' "$work/out" || fail "no first wrong word in the JSON"
equal "an automaton over other letters" "$(code "$lrnn" verify "$work/tiny" --regex 'a*' --alphabet a)" 2
grep -q "does not read the automaton's symbol 'a'" "$work/err" || fail "the symbol is not named"
sed 's/name: parity/name: recall/; /train: {length/d; /eval: {length/d' configs/tiny.yaml >"$work/recall.yaml"
"$lrnn" train "$work/recall.yaml" train.steps=1 train.batch=2 --out "$work/recall" --quiet >/dev/null 2>&1 ||
  fail "recall does not train"
equal "a task without an automaton" "$(code "$lrnn" verify "$work/recall")" 2
grep -q "has no automaton of its own" "$work/err" || fail "it is not said that there is none"

# Fine-tuning: a compiled model is right before and after some steps on its own task, gentle or rough,
# for that has nothing to teach it. The task's own automaton is what it is compared with: it is no
# longer certified. tuned.sh has more.
"$lrnn" compile --group S3 -o "$work/s3" >/dev/null
"$lrnn" train --from "$work/s3" train.steps=3 train.batch=4 train.lr=1e-6 --out "$work/soft" --quiet >"$work/out"
grep -q 'accuracy 1.0000' "$work/out" || fail "gentle steps broke the model: $(cat "$work/out")"
equal "gently tuned" "$(code "$lrnn" verify "$work/soft" --tokens 2000)" 0
grep -q 'nothing is proved' "$work/out" || fail "a tuned model is not said to be trained"
equal "gently tuned, against its group" "$(code "$lrnn" verify "$work/soft" --group S3 --tokens 500)" 0
equal "run of a tuned model" "$(printf '1 1\n' | "$lrnn" run "$work/soft")" e
"$lrnn" train "$work/soft/config.yaml" --out "$work/soft" --resume --quiet >/dev/null ||
  fail "a run that began with --from cannot be resumed"
"$lrnn" train --from "$work/s3" train.steps=20 train.batch=4 train.lr=0.5 --out "$work/rough" --quiet >/dev/null
equal "roughly tuned" "$(code "$lrnn" verify "$work/rough" --tokens 2000)" 0
# Rough steps towards other answers do break it: at that rate it learns nothing.
"$lrnn" compile --example parity -o "$work/parity" >/dev/null
"$lrnn" train --from "$work/parity" task.example= 'task.regex=(0|10*1)*' task.alphabet=01 train.steps=3 \
  train.batch=4 train.lr=0.5 --out "$work/broken" --quiet >/dev/null
equal "roughly taught, against what it was" "$(code "$lrnn" verify "$work/broken" --example parity --tokens 2000)" 1

equal "--from nothing" "$(code "$lrnn" train --from "$work/none" --out "$work/x")" 2
equal "--from with --resume" "$(code "$lrnn" train --from "$work/s3" --resume --out "$work/x")" 2
equal "another shape" "$(code "$lrnn" train configs/tiny.yaml --from "$work/s3" --out "$work/x")" 2
[ ! -e "$work/x" ] || fail "a folder was left behind"
equal "no config" "$(code "$lrnn" train)" 2
echo ok
