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

# By position, from what eval left: two seeds are one line, their mean with the lowest and highest.
for seed in 42 43; do
  mkdir -p "$work/lm/seed$seed/eval"
  sed "s/^seed:.*/seed: $seed/" configs/lm/python_40M_n3.yaml >"$work/lm/seed$seed/config.yaml"
done
mkdir -p "$work/lm/other/eval" && cp configs/lm/python_40M_n1.yaml "$work/lm/other/config.yaml"
python3 - "$work/lm" <<'PY'
import sys
for run, add in ("seed42", 0), ("seed43", 0.5), ("other", 2):
    with open(f"{sys.argv[1]}/{run}/eval/position.csv", "w") as f:
        f.write("domain,position,loss,smoothed,running_perplexity,accuracy,sequences\n")
        for domain, base in ("python", 2), ("math", 1):
            for position in 32, 64, 1024, 8192:
                f.write(f"{domain},{position},9,{base + add},9,0.5,50\n")
PY
expect 2 "has no losses by position yet" "$lrnn" curves "$work/a" --by position
expect 0 "" "$lrnn" curves "$work"/lm/{seed42,seed43,other} --by position -o "$work/positions.svg"
for words in "Loss by position: python" "Loss by position: math" "length in training" "DeltaProduct n_h=3 [-1,1]" "DeltaNet [-1,1]"; do
  grep -qF ">$words<" "$work/positions.svg" || fail "the figure has no '$words'"
done
equal "its table" "$(grep -c ',python,' "$work/positions.csv") $(grep 'n_h=3.*,math,1024' "$work/positions.csv")" \
  '6 "DeltaProduct n_h=3 [-1,1]",math,1024,1.250000,1.000000,1.500000,2'
expect 0 "" "$lrnn" curves "$work"/lm/{seed42,seed43} --by position --domain math --first 1000 --json
equal "one domain, from 1,000 on" "$(value 'd["models"][0]["curves"]')" "{'math': [[1024, 1.25, 1.0, 1.5], [8192, 1.25, 1.0, 1.5]]}"
expect 2 "no run was evaluated on 'go'" "$lrnn" curves "$work"/lm/seed42 --by position --domain go
sed -i '$d' "$work/lm/seed43/eval/position.csv"
expect 2 "at other positions" "$lrnn" curves "$work"/lm/seed4* --by position

[ $failures = 0 ] && echo "curves: all is well"
