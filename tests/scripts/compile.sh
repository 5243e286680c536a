#!/usr/bin/env bash
# compile -> run -> verify, as a user types them.
. tests/scripts/lib/as_user.sh
set -eo pipefail

"$lrnn" compile --regex '(ab|ba)*' --alphabet ab -o "$work/abba" >"$work/out"
grep -q 'exactness: exact' "$work/out" || fail "compile says nothing of exactness"
equal "recogniser" "$(printf 'abba\naab\n\nb\n' | "$lrnn" run "$work/abba" | tr '\n' ' ')" \
  "accept reject accept reject "
equal "every" "$(printf 'abba\n' | "$lrnn" run "$work/abba" --every)" "reject accept reject accept"
printf 'abc\n' | "$lrnn" run "$work/abba" >/dev/null 2>"$work/err" && fail "c is no symbol"
grep -q "'c' is not a symbol" "$work/err" || fail "the unknown symbol is not named"
"$lrnn" verify "$work/abba" --tokens 2000 --json >"$work/json"
grep -q '"right":true' "$work/json" || fail "verify is not content"

# A group: elements as cycles, or by number, y <- y * x.
"$lrnn" compile --group S3 -o "$work/s3" --json | grep -q '"householders":2' || fail "S3 needs 2"
equal "product" "$(printf '1 1\n1\n' | "$lrnn" run "$work/s3" | tr '\n' ' ')" "e (23) "
equal "product by number" "$(printf '1 1\n1\n' | "$lrnn" run "$work/s3" --ids | tr '\n' ' ')" "0 1 "
"$lrnn" eval "$work/s3" --samples 8 | grep -q 'accuracy 1.0000' || fail "eval of a compiled model"
"$lrnn" spectrum "$work/s3" --samples 2 >/dev/null

# A word of a million letters takes no more memory than a short one.
head -c 1000000 /dev/zero | tr '\0' 'a' >"$work/long"
equal "long" "$("$lrnn" run "$work/abba" <"$work/long")" "reject"

# Limits that cannot be kept: exit code 2, and the smallest that would.
code=0; "$lrnn" compile --group S3 --householders 1 -o "$work/x" 2>"$work/err" || code=$?
equal "exit code" "$code" 2
grep -q -- '--householders 2' "$work/err" || fail "the limits that would do are not named"
[ ! -e "$work/x" ] || fail "a folder was left behind"

echo ok
