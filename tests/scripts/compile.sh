#!/usr/bin/env bash
# compile -> run -> verify, as a user types them.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $1"; exit 1; }
expect() { [ "$2" = "$3" ] || fail "$1: got '$2', not '$3'"; }

"$LRNN" compile --regex '(ab|ba)*' --alphabet ab -o "$work/abba" >"$work/out"
grep -q 'exactness: exact' "$work/out" || fail "compile says nothing of exactness"
expect "recogniser" "$(printf 'abba\naab\n\nb\n' | "$LRNN" run "$work/abba" | tr '\n' ' ')" \
  "accept reject accept reject "
expect "every" "$(printf 'abba\n' | "$LRNN" run "$work/abba" --every)" "reject accept reject accept"
printf 'abc\n' | "$LRNN" run "$work/abba" >/dev/null 2>"$work/err" && fail "c is no symbol"
grep -q "'c' is not a symbol" "$work/err" || fail "the unknown symbol is not named"
"$LRNN" verify "$work/abba" --tokens 2000 --json >"$work/json"
grep -q '"right":true' "$work/json" || fail "verify is not content"

# A group: elements as cycles, or by number, y <- y * x.
"$LRNN" compile --group S3 -o "$work/s3" --json | grep -q '"householders":2' || fail "S3 needs 2"
expect "product" "$(printf '1 1\n1\n' | "$LRNN" run "$work/s3" | tr '\n' ' ')" "e (23) "
expect "product by number" "$(printf '1 1\n1\n' | "$LRNN" run "$work/s3" --ids | tr '\n' ' ')" "0 1 "
"$LRNN" eval "$work/s3" --samples 8 | grep -q 'accuracy 1.0000' || fail "eval of a compiled model"
"$LRNN" spectrum "$work/s3" --samples 2 >/dev/null

# A word of a million letters takes no more memory than a short one.
head -c 1000000 /dev/zero | tr '\0' 'a' >"$work/long"
expect "long" "$("$LRNN" run "$work/abba" <"$work/long")" "reject"

# Limits that cannot be kept: exit code 2, and the smallest that would.
code=0; "$LRNN" compile --group S3 --householders 1 -o "$work/x" 2>"$work/err" || code=$?
expect "exit code" "$code" 2
grep -q -- '--householders 2' "$work/err" || fail "the limits that would do are not named"
[ ! -e "$work/x" ] || fail "a folder was left behind"

echo ok
