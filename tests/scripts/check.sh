#!/usr/bin/env bash
# `lrnn check` as a user runs it ($LRNN). Run from the repository root.
. tests/scripts/lib/as_user.sh

# expect CODE 'text' command ...: the exit code, and a fixed piece of what is said.
expect() {
  local code=$1 text=$2; shift 2
  timeout 60 "$lrnn" check "$@" >"$work/out" 2>"$work/err" </dev/null
  local got=$?
  [ "$got" = "$code" ] || fail "check ${*:0:200} ended with $got, not $code: $(cat "$work/err")"
  grep -qF -- "$text" "$work/out" "$work/err" || fail "check did not say '$text': $(cat "$work/err")"
}

# --- every way to name an automaton
even='{"alphabet":["a","b"],"states":["even","odd"],"start":"even","accept":["even"],"next":{"even":{"a":"odd","b":"even"},"odd":{"a":"even","b":"odd"}}}'
echo "$even" >"$work/even.json"
echo 'digraph { "" [shape=point]; "" -> even; even [shape=doublecircle]; even -> odd [label=a]; odd -> even [label=a]; even -> even [label=b]; odd -> odd [label=b] }' >"$work/even.dot"
expect 0 "Mamba, GLA (diagonal, [0,1]) cannot: 'a' has period 2" --regex '(aa)*' --alphabet a
expect 0 "Theorem 1" --automaton "$work/even.json"
expect 0 "Theorem 1" --automaton "$work/even.dot"
expect 0 "not solvable" --group A5
expect 0 "star-free" --example contains_aba
expect 0 "1 Householder," --group S3 --letters swaps
expect 0 "3 Householders" --group '(123456),(12)'
expect 0 "2 states" --regex '' --alphabet a  # the empty expression is one
expect 2 "no automaton was named"
expect 2 "more than one" --group S3 --example parity
expect 2 "needs its --alphabet" --regex a

# --- what cannot be read is one sentence and exit code 2
expect 2 "column 3" --regex 'ab)' --alphabet ab
expect 2 "column 2" --regex 'a{1,1000000}' --alphabet ab
expect 2 "brackets" --regex "$(printf '(%.0s' $(seq 20000))" --alphabet ab
expect 2 "not in the alphabet" --regex abc --alphabet ab
expect 2 "not UTF-8" --regex $'a\xff' --alphabet ab
expect 2 "twice" --regex a --alphabet aa
expect 2 "too much work" --regex '(a?){5000}a{5000}' --alphabet ab
expect 2 "more than 10000 states" --regex '.*a.{40}' --alphabet ab
expect 2 "there are two states 'even'" --automaton <(echo "${even/\"odd\"]/\"even\"]}")
expect 2 "is not JSON" --automaton <(echo "${even%\}}")
expect 2 "is not JSON" --automaton <(printf '{"alphabet":["\xff"]}')
expect 2 "there is no file" --automaton "$work/none.json"
expect 2 "more than 10000 elements" --group S9
expect 2 "did you mean 'parity'" --example party
expect 2 "is not an element" --group S3 --letters 1,9

# --- the JSON has what it says it has
expect 0 verdicts --group Z3 --json
python3 - "$work/out" <<'PY' || fail "the JSON of check"
import json, sys
d = json.load(open(sys.argv[1]))
c = d["class"]
assert c["states"] == 3 and c["group"] and c["solvable"] and c["derived_length"] == 1
assert not c["aperiodic"] and not c["two_group"] and c["period_primes"] == [3]
assert {p["exactness"] for p in d["plans"]} <= {"exact", "drift"}
rows = d["verdicts"]
for r in rows:
    assert set(r) == {"family", "range", "householders", "layers", "verdict", "how", "theorem", "reason"}
    assert r["family"] in ("diagonal", "diagonal_complex", "delta_product", "gated_delta_product", "titans", "ttt")
    ranges = {"titans": ([0, 1], [0, 2]), "ttt": (None,)}.get(r["family"], ([0, 1], [-1, 1]))
    assert r["range"] in ranges and r["verdict"] in ("yes", "no", "unknown")
    assert r["how"] in ("compiled", "existence", "theorem")
    assert r["layers"] == "any" or r["layers"] >= 1
    assert r["householders"] is None or r["householders"] >= 1
def row(family, low, k, layers):
    found = [r for r in rows if (r["family"], r["range"], r["householders"], r["layers"]) == (family, [low, 1], k, layers)]
    assert len(found) == 1
    return found[0]["verdict"]
assert row("diagonal", -1, None, "any") == "no" and row("diagonal_complex", -1, None, 1) == "yes"
assert row("delta_product", -1, 1, 1) == "no" and row("delta_product", -1, 1, 2) == "yes"
assert row("delta_product", -1, 2, 1) == "yes" and row("delta_product", 0, 2, "any") == "no"
PY
expect 0 '"derived_length":null' --example a5_points --json
[ "$failures" = 0 ] && echo "lrnn check: all well"
