#!/usr/bin/env bash
# lrnn curves: loss and accuracy by step, of one run and of several, finished or not.
. tests/scripts/lib/as_user.sh

expect 0 "" "$lrnn" curves --help
grep -q Example "$work/out" || fail "the help has no example"
expect 0 "" "$lrnn" train configs/tiny.yaml --out "$work/a" --quiet
expect 0 "" "$lrnn" train "$work/a" --resume train.steps=30 --quiet
expect 0 "" "$lrnn" train configs/tiny.yaml seed=2 --out "$work/b" --quiet
expect 0 "" "$lrnn" curves "$work/a"
rm "$work/b/result.json"; printf '{"kind":"ev' >>"$work/b/metrics.jsonl"  # as a killed run leaves it
expect 0 "" "$lrnn" curves "$work/a" "$work/b" -o "$work/two.svg" --json
python3 - "$work" <<'PY' || fail "what it wrote"
import csv, json, sys, xml.dom.minidom
work = sys.argv[1]
lines = [json.loads(line) for line in open(work + "/a/metrics.jsonl")]
points = [line for line in lines if line["kind"] in ("train", "eval")]
rows = list(csv.DictReader(open(work + "/a/figures/curves.csv")))
assert len(rows) == len(points) == 6 + 3, rows
for row in rows:
    [line] = [p for p in points if p["kind"] == row["kind"] and p["step"] == int(row["step"])]
    for key in "loss", "accuracy", "scaled", "lr", "grad_norm":
        assert (float(row[key]) == line[key]) if key in line else row[key] == "", (row, line)
assert [int(row["step"]) for row in rows] == sorted(int(row["step"]) for row in rows)
one = open(work + "/a/figures/curves.svg").read()
for words in "Loss", "Accuracy", "training", "evaluation", "extended to 30":
    assert f">{words}<" in one, words
two = xml.dom.minidom.parse(work + "/two.svg")
names = [node.firstChild.data for node in two.getElementsByTagName("text") if node.firstChild]
assert names.count("a") == names.count("b") == 3, names  # loss, training, evaluation
out = json.load(open(work + "/out"))
assert [len(run["train"]) for run in out["runs"]] == [6, 4] and out["csv"] == work + "/two.csv", out
assert out["runs"][0]["changes"][0]["steps"] == {"from": 20, "to": 30}, out
PY
expect 2 "is not a run" "$lrnn" curves "$work"
rm "$work/b/metrics.jsonl"
expect 2 "has no metrics yet" "$lrnn" curves "$work/b"
expect 0 "" "$lrnn" compile --group Z2 -o "$work/z2"
expect 2 "it was compiled and not trained" "$lrnn" curves "$work/z2"

[ $failures = 0 ] && echo "curves: all is well"
