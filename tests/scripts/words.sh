#!/usr/bin/env bash
# Words on standard input: answers come before an error, and elements of groups have several names.
. tests/scripts/lib/as_user.sh
set -eo pipefail
# run WORDS ARGUMENTS...: the exit code; answers in $work/out, complaints in $work/err
run() { local c=0 words=$1; shift; printf "$words" | "$lrnn" run "$@" >"$work/out" 2>"$work/err" || c=$?; echo $c; }
lines() { tr '\n' '|' <"$work/out"; }

"$lrnn" compile --regex '(ab|ba)*' --alphabet ab -o "$work/abba" >/dev/null
"$lrnn" compile --group S3 -o "$work/s3" >/dev/null

# --- a bad letter in line 4 does not lose the answers of the lines before it
for how in "" --step; do
  equal "bad letter $how" "$(run 'abba\nb\nab\nabxb\nab\n' "$work/abba" $how)" 2
  equal "answers before the bad letter $how" "$(lines)" "accept|reject|accept|"
  grep -q "line 4: 'x' is not a symbol" "$work/err" || fail "the line is not named: $(cat "$work/err")"
done
# In a word too long to wait for, what was said of it is left unfinished.
{ echo ab; head -c 20000 /dev/zero | tr '\0' 'a'; echo x; } >"$work/long"
c=0; "$lrnn" run "$work/abba" --every --json <"$work/long" >"$work/out" 2>/dev/null || c=$?
equal "bad letter after 20,000" "$c" 2
python3 - "$work/out" <<'PY' || fail "an unfinished line"
import json, sys
lines = open(sys.argv[1]).read().split("\n")
assert json.loads(lines[0]) == {"answers": ["reject", "accept"]} and len(lines) == 3 and lines[2] == ""
try:
    json.loads(lines[1])
    raise SystemExit("half an answer looks like a whole one")
except json.JSONDecodeError:
    pass
PY
c=0; "$lrnn" run "$work/abba" <"$work" >"$work/out" 2>"$work/err" || c=$?
equal "a folder as input" "$c" 2
grep -q 'cannot be read' "$work/err" || fail "input that cannot be read"

# --- cycles and ids in, cycles or ids out; the last factor acts first, as in the papers
equal "cycles" "$(run '(1 2) (2 3)\n(12) (23)\n2 1\n( 3 2 1 ) e ()\n\n' "$work/s3")" 0
equal "products" "$(lines)" "(123)|(123)|(123)|(132)|e|"
run '(1 2) (2 3)\n(12)\n\n' "$work/s3" --ids >/dev/null
equal "ids" "$(lines)" "3|2|0|"
# The published example: S3 inputs 1 2 3 4 5 1 give 1 4 0 4 2 3.
run '1 2 3 4 5 1\n' "$work/s3" --ids --every >/dev/null
equal "the papers' ids" "$(lines)" "1 4 0 4 2 3|"
equal "a point twice" "$(run '(12)\n(12)(23)\n' "$work/s3")" 2
equal "the answer before it" "$(lines)" "(12)|"
grep -q "line 2: '(12)(23)' is not a permutation: 2 comes twice" "$work/err" || fail "$(cat "$work/err")"
for bad in '(14)' '(12'; do
  equal "$bad" "$(run "$bad\n" "$work/s3")" 2
  grep -q "^lrnn: line 1: '$bad' is not a" "$work/err" || fail "$bad: $(cat "$work/err")"
done

# --- the key
equal "the key" "$(run '' "$work/s3" --key)" 0
grep -Eq '^ *3 +\(123\) +2 3 1 +yes' "$work/out" || fail "no line for (123): $(cat "$work/out")"
grep -q 'last factor acts first' "$work/out" || fail "the convention is not said"
run '' "$work/s3" --key --json >/dev/null
python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["elements"][3] == {"id": 3, "element": "(123)", "letter": True, "one_line": "2 3 1"}, d' "$work/out" || fail "the key as JSON"
equal "no group, no key" "$(run '' "$work/abba" --key)" 2
equal "no group, no ids" "$(run 'ab\n' "$work/abba" --ids)" 2

# --- letters by cycles or ids; a word of single characters needs no spaces
"$lrnn" compile --group S5 --letters '(12),(12345)' -o "$work/s5" >/dev/null
equal "S5" "$(run '(1 2) (12345)\n24 33\n' "$work/s5")" 0
equal "S5 answers" "$(lines)" "(2345)|(2345)|"
equal "an element that is no letter" "$(run '(13)\n' "$work/s5")" 2
grep -q 'its symbols are (12) (12345)' "$work/err" || fail "the letters are not listed"
"$lrnn" compile --group Z3 -o "$work/z3" >/dev/null
equal "Z3" "$(run '112\n1 1 2\n1()2e\n' "$work/z3")" 0
equal "Z3 answers" "$(lines)" "1|1|0|"

# --- the task of groups, trained, the same
sed 's/name: parity/name: group\n  group: S3/; /train: {length/d; /eval: {length/d' configs/tiny.yaml >"$work/group.yaml"
"$lrnn" train "$work/group.yaml" train.steps=1 train.batch=2 task.eval.samples=2 task.train.length=4 task.eval.length=4 --out "$work/trained" --quiet >/dev/null
run '(1 2) (2 3)\n' "$work/trained" --every >/dev/null; cp "$work/out" "$work/cycles"
run '2 1\n' "$work/trained" --every >/dev/null
cmp -s "$work/out" "$work/cycles" || fail "a trained model reads ids otherwise than cycles"
equal "its key" "$(run '' "$work/trained" --key)" 0
echo ok
