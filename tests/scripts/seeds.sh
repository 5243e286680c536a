#!/usr/bin/env bash
# lrnn train --seeds: a run for each, a summary, and one that fails leaves the others alone.
. tests/scripts/lib/as_user.sh
weights() { sha256sum <"$1/checkpoints/step-00000020/model.safetensors"; }

expect 0 "" "$lrnn" train configs/tiny.yaml --seeds 3 --jobs 2 --out "$work/all" --quiet --json
python3 - "$work/out" "$work/all" <<'PY' || fail "the summary"
import json, statistics, sys
d = json.load(open(sys.argv[1]))
assert [run["seed"] for run in d["runs"]] == [1, 2, 3] and not d["interrupted"], d
assert [run["run"] for run in d["runs"]] == [f"{sys.argv[2]}/seed{n}" for n in (1, 2, 3)], d
for key in "accuracy", "scaled":
    scores = []
    for run in d["runs"]:
        result = json.load(open(run["run"] + "/result.json"))
        assert run["done"] and run["step"] == 20 and run["seconds"] > 0, run
        assert run[key] == result["evaluation"][key], run
        scores.append(run[key])
    middle = statistics.median(scores)
    mad = statistics.median(abs(s - middle) for s in scores)
    assert d[key] == {"best": max(scores), "median": middle, "mad": mad}, d[key]
assert len({run["accuracy"] for run in d["runs"]}) > 1, "seeds that are all the same"
PY
# Each is the run that its seed makes by itself.
expect 0 "" "$lrnn" train configs/tiny.yaml seed=2 --out "$work/two" --quiet
[ "$(weights "$work/two")" = "$(weights "$work/all/seed2")" ] || fail "seed 2 of several is another run than seed 2"

# --- what is there is not touched without a word
expect 2 "seed1 already holds a run" "$lrnn" train configs/tiny.yaml --seeds 3 --out "$work/all"
expect 2 "--seeds trains a config" "$lrnn" train "$work/all/seed1" --resume --seeds 2
expect 2 "--seeds: 0 is too small" "$lrnn" train configs/tiny.yaml --seeds 0
expect 2 "--jobs requires --seeds" "$lrnn" train configs/tiny.yaml --jobs 2

# --- one more seed; the others are left alone; and all of them longer
before=$(stat -c %Y "$work"/all/seed*/train.log)
expect 0 "" "$lrnn" train configs/tiny.yaml --seeds 4 --out "$work/all" --resume
for word in seed4 best median MAD; do grep -qF $word "$work/out" || fail "the table has no $word: $(cat "$work/out")"; done
[ "$before" = "$(stat -c %Y "$work"/all/seed[123]/train.log)" ] || fail "finished seeds were run again"
expect 0 "" "$lrnn" train configs/tiny.yaml train.steps=30 --seeds 2 --out "$work/all" --resume --quiet --json
[ "$(value '[run["step"] for run in d["runs"]]')" = "[30, 30]" ] || fail "train.steps=30 --resume: $(cat "$work/out")"

# --- one fails: the others go on, it is named, and the exit code is 2
expect 0 "" "$lrnn" train configs/tiny.yaml train.lr=0.5 seed=2 --out "$work/broken/seed2" --quiet
expect 2 "lrnn: seed 2 failed: " "$lrnn" train configs/tiny.yaml --seeds 3 --out "$work/broken" --resume --quiet --json
grep -qF "train.lr: 0.5 -> 0.01" "$work/err" || fail "it does not say why: $(cat "$work/err")"
[ "$(value '[run["done"] for run in d["runs"]], "train.lr" in d["runs"][1]["error"]')" = "[True, False, True] True" ] || fail "$(cat "$work/out")"
expect 0 "" "$lrnn" train configs/tiny.yaml --seeds 3 --out "$work/broken" --overwrite --quiet

# --- from the weights of another run
expect 0 "" "$lrnn" train --from "$work/two" train.steps=2 --seeds 2 --out "$work/from" --quiet --json
[ "$(value '[run["seed"] for run in d["runs"]]')" = "[2, 3]" ] || fail "--from --seeds: $(cat "$work/out")"
expect 2 "which the run begins with" "$lrnn" train --from "$work/from/seed3" --seeds 2 --out "$work/from" --overwrite
[ -d "$work/from/seed3/checkpoints/step-00000000" ] || fail "seed 3 does not begin with the weights of --from"

# --- Ctrl-C saves, says how to go on, and ends with 130
"$lrnn" train configs/tiny.yaml train.steps=100000000 train.eval_every=0 --seeds 2 --jobs 2 --out "$work/long" --json >"$work/out" 2>"$work/err" &
child=$!
for _ in $(seq 600); do grep -q "^step" "$work"/long/seed1/train.log 2>/dev/null && break; sleep 0.1; done
kill -INT $child; wait $child; code=$?
[ $code = 130 ] || fail "interrupted, it ended with $code"
grep -qF -- "--seeds 2 --jobs 2 --out $work/long --resume" "$work/err" || fail "it does not say how to go on: $(cat "$work/err")"
[ "$(value 'd["interrupted"]')" = True ] || fail "--json does not say that it was interrupted"
ls "$work"/long/seed1/checkpoints/step-* >/dev/null || fail "nothing was saved"

# --- --progress: what another program can read, errors included
expect 0 "" "$lrnn" train configs/tiny.yaml train.steps=400 --out "$work/told" --quiet --progress "$work/lines"
expect 2 "already holds a run" "$lrnn" train configs/tiny.yaml --out "$work/told" --progress "$work/lines"
python3 - "$work/lines" <<'PY' || fail "--progress: $(cat "$work/lines")"
import json, sys
*steps, error = map(json.loads, open(sys.argv[1]))
assert {line["kind"] for line in steps} == {"progress"} and steps[-1]["step"] == steps[-1]["steps"] == 400, steps
assert all(line["loss"] > 0 and 0 <= line["accuracy"] <= 1 and line["steps_per_second"] > 0 for line in steps), steps
assert 0 <= steps[-1]["eval_accuracy"] <= 1 and steps[-1]["eval_scaled"] <= 1, steps
assert error["kind"] == "error" and "already holds a run" in error["text"] and error["hint"], error
PY
expect 2 "--seeds excludes --progress" "$lrnn" train configs/tiny.yaml --seeds 2 --out "$work/no" --progress "$work/lines"

[ $failures = 0 ] && echo "seeds: all is well"
