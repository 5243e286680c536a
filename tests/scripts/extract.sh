#!/usr/bin/env bash
# From weights back to an automaton, and from that to weights that are proved: compiled models give their
# minimal automaton, a trained one that of its task, one that was taught nothing the best that was found.
. tests/scripts/lib/as_user.sh
export OMP_NUM_THREADS=1

# states NAME WANTED ARGUMENTS...: compiled, asked, compiled again and proved.
there_and_back() {
  local name=$1 states=$2; shift 2
  "$lrnn" compile "$@" -o "$work/$name" >/dev/null || fail "$name does not compile"
  equal "$name" "$(code "$lrnn" extract "$work/$name" -o "$work/$name.json" --longest 60 --json)" 0
  json "$name"
  equal "states of $name" "$(value 'd["states"]')" "$states"
  equal "what $name says of itself" "$(value 'd["task"]["same"], d["longest"], d["first_difference"]')" "True 60 None"
  equal "$name all equal" "$(value 'all(r["equal"] == r["words"] > 0 for r in d["agreement"])')" True
  "$lrnn" compile --automaton "$work/$name.json" -o "$work/$name.exact" >/dev/null || fail "$name does not compile again"
  equal "$name is proved" "$(code "$lrnn" verify "$work/$name.exact" --tokens 500)" 0
}
there_and_back abba 4 --regex '(ab|ba)*' --alphabet ab
equal "accepting states" "$(python3 -c "import json; d=json.load(open('$work/abba.json')); print(d['accept'], d['states'])")" \
  "['accept'] ['accept', 'reject', 'reject#2', 'reject#3']"
there_and_back s3 6 --group S3
there_and_back bos 3 --example mod3 --profile native-bos
there_and_back points 4 --example s4_points

# A trained model, whose answer to words comes at their end.
"$lrnn" train configs/quick/parity_delta_net_2.yaml --out "$work/parity" --quiet >/dev/null 2>&1 || fail "parity does not train"
equal "trained" "$(code "$lrnn" extract "$work/parity" -o "$work/parity.json")" 0
says "2 states, 2 symbols"
says "it is the task's own automaton"
says "no difference was found up to 400 letters"
cp "$work/parity.json" "$work/first.json"
equal "again" "$(code "$lrnn" extract "$work/parity" -o "$work/parity.json" --json)" 0
cmp -s "$work/parity.json" "$work/first.json" || fail "the same words gave another automaton"
"$lrnn" compile --automaton "$work/parity.json" -o "$work/exact" >/dev/null || fail "parity does not compile"
equal "proved" "$(code "$lrnn" verify "$work/exact" --tokens 2000)" 0
says "right on every word of every length"

# Twenty steps teach nothing: the best automaton found, and where it parts from the model.
"$lrnn" train configs/tiny.yaml --out "$work/tiny" --quiet >/dev/null 2>&1
equal "untrained" "$(code "$lrnn" extract "$work/tiny" -o "$work/tiny.json" --states 3 --json)" 1
equal "its budget" "$(value 'd["ended"], d["states"] <= 3, d["agreed"], d["first_difference"]["length"] > 0')" \
  "states True False True"
"$lrnn" check --automaton "$work/tiny.json" >/dev/null || fail "what was found is no automaton"
equal "no time" "$(code "$lrnn" extract "$work/tiny" -o "$work/tiny.json" --seconds 0.001)" 1
says "seconds are over"
equal "few words" "$(code "$lrnn" extract "$work/tiny" -o "$work/tiny.json" --words 10)" 1

# What cannot be asked.
sed 's/name: parity/name: recall/; /train: {length/d; /eval: {length/d' configs/tiny.yaml >"$work/recall.yaml"
"$lrnn" train "$work/recall.yaml" train.steps=1 train.batch=2 --out "$work/recall" --quiet >/dev/null 2>&1
expect 2 "the task recall asks at places of its own" "$lrnn" extract "$work/recall" -o "$work/x.json"
expect 2 "" "$lrnn" extract "$work/none" -o "$work/x.json"
expect 2 "" "$lrnn" extract "$work/s3" -o "$work/x.json" --states 0
expect 2 "--out" "$lrnn" extract "$work/s3"
[ ! -e "$work/x.json" ] || fail "a file was left behind"
echo ok
