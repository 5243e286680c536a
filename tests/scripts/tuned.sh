#!/usr/bin/env bash
# A compiled model trained further, as a user types it: it stays right on its own task, learns other
# answers, and is refused where that cannot be.
. tests/scripts/lib/as_user.sh
set -eo pipefail
margin() { sed -n 's/.*"margin":{"weight":\([0-9.e-]*\),"length":256.*/\1/p' "$1"; }

# README's own line.
"$lrnn" compile --regex '(ab|ba)*' --alphabet ab -o "$work/abba" >"$work/out"
grep -q 'margin: every weight may move by up to 0.03[0-9]*, and it stays right up to length 256' \
  "$work/out" || fail "compile does not name the margin: $(cat "$work/out")"
"$lrnn" train --from "$work/abba" train.steps=100 --out "$work/tuned" --quiet >"$work/out"
grep -q 'accuracy 1.0000' "$work/out" || fail "100 steps broke the model: $(cat "$work/out")"
equal "verify of the tuned model" "$(code "$lrnn" verify "$work/tuned" --tokens 4096)" 0
equal "run of the tuned model" "$(echo abbaab | "$lrnn" run "$work/tuned")" accept

# The certificate: the margin, what was tried, and the same number in every place.
equal "verify" "$(code "$lrnn" verify "$work/abba" --tokens 2000)" 0
grep -q 'bounded part by part; tried in 8 random directions and the worst one: 0 wrong' "$work/out" ||
  fail "verify does not try the margin: $(cat "$work/out")"
"$lrnn" verify "$work/abba" --tokens 2000 --json >"$work/json"
named=$(margin "$work/json")
[ -n "$named" ] || fail "no margin in verify --json"
tr -d ' \n' <"$work/abba/compiled.json" >"$work/compiled"
equal "compiled.json" "$(margin "$work/compiled")" "$named"
equal "compile --json" "$("$lrnn" compile --regex '(ab|ba)*' --alphabet ab -o "$work/again" --json >"$work/json"
  margin "$work/json")" "$named"

# Odd for even. Against its first task it is wrong now, and verify says so.
"$lrnn" compile --regex '(a|ba*b)*' --alphabet ab -o "$work/even" >/dev/null
"$lrnn" train --from "$work/even" 'task.regex=(a|ba*b)*ba*' --out "$work/odd" --quiet >"$work/out"
grep -q 'accuracy 1.0000.* after 1,000 steps' "$work/out" || fail "odd was not learnt: $(cat "$work/out")"
equal "odd" "$(code "$lrnn" verify "$work/odd" --tokens 4096)" 0
equal "odd against even" "$(code "$lrnn" verify "$work/odd" --regex '(a|ba*b)*' --alphabet ab --tokens 500)" 1
equal "words" "$(printf 'ab\nabab\n' | "$lrnn" run "$work/odd" | tr '\n' ' ')" "accept reject "

# What cannot be: exit code 2, a sentence, nothing written.
refused() { equal "$1" "$(code "$lrnn" train --from "$2" --out "$work/x" "${@:4}")" 2
            grep -q "$3" "$work/err" || fail "$1: $(cat "$work/err")"
            [ ! -e "$work/x" ] || fail "$1: a folder was left behind"; }
refused "other letters" "$work/even" 'reads a b, and the task.s letters are 0 1' 'task.regex=(01)*' task.alphabet=01
refused "more letters" "$work/even" 'the task.s letters are a b c' 'task.regex=(abc)*' task.alphabet=abc
"$lrnn" compile --example parity --profile fp64 -o "$work/wide" >/dev/null
refused "float64" "$work/wide" 'AdamW trains float32 weights'
"$lrnn" compile --example s5_points --profile fla -o "$work/fla" >"$work/out"
grep -q 'margin: none could be shown, because of the gates of layer 1' "$work/out" || fail "no margin is not said"
refused "no margin" "$work/fla" 'no margin could be shown for the gates of layer 1'

# A folder of an earlier version.
sed -i '/"margin": {/,$d' "$work/again/compiled.json" && sed -i '$ s/,$/\n}/' "$work/again/compiled.json"
refused "an earlier folder" "$work/again" 'was compiled by an earlier lrnn'
equal "verify of an earlier folder" "$(code "$lrnn" verify "$work/again")" 2
equal "run of an earlier folder" "$(echo ab | "$lrnn" run "$work/again")" accept
echo ok
