# What the scripts of this folder share, sourced from the repository root: the program ($lrnn), a folder
# that goes away at the end ($work), and words to say what is expected. A failed expectation is printed
# and the script goes on; it ends with 1 if there was any.
set -u
lrnn=$(realpath "${LRNN:-build/lrnn}")
work=$(mktemp -d)
failures=0
trap 'code=$?; rm -rf "$work"; [ "$failures" = 0 ] || code=1; exit $code' EXIT

fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
# expect CODE 'text' command ...: the exit code, and a fixed piece of what is said on stderr. What it
# printed is in $work/out, what it said in $work/err.
expect() {
  local code=$1 text=$2; shift 2
  "$@" >"$work/out" 2>"$work/err" </dev/null
  local got=$?
  [ "$got" = "$code" ] || fail "$* ended with $got, not $code: $(cat "$work/err")"
  [ -z "$text" ] || grep -qF -- "$text" "$work/err" || fail "$* did not say '$text': $(cat "$work/err")"
}
says() { grep -qF -- "$1" "$work/out" || fail "it did not print '$1': $(cat "$work/out")"; }
json() { python3 -m json.tool <"$work/out" >/dev/null || fail "not one JSON object: $1"; }
value() { python3 -c "import json; d=json.load(open('$work/out')); print($1)"; }
# equal WHAT GOT WANTED
equal() { [ "$2" = "$3" ] || fail "$1: got '$2', not '$3'"; }
# code command ...: prints the exit code
code() { local c=0; "$@" >"$work/out" 2>"$work/err" </dev/null || c=$?; echo $c; }
