#!/usr/bin/env bash
# A run begun before a key existed goes on: it is evaluated, and resumed to the same bits, with what the
# key is by default. Run from the repository root.
. tests/scripts/lib/as_user.sh

printf 'task: {name: parity, train: {length: [3, 4]}, eval: {length: [3, 4], samples: 8}}\n' >"$work/c.yaml"
printf 'model: {width: 16, layers: 1, mixer: {name: delta_product, heads: 1, forget_gate: true}}\n' >>"$work/c.yaml"
printf 'train: {steps: 8, batch: 2, checkpoint_every: 4, keep: 9}\n' >>"$work/c.yaml"
train() { "$lrnn" train "$work/c.yaml" "$@" --quiet >/dev/null 2>"$work/err" || fail "train $*: $(cat "$work/err")"; }

train --out "$work/whole"
train --out "$work/old"
grep -q "accuracy: auto" "$work/old/config.yaml" || fail "the key is not in config.yaml"
sed -i '/accuracy:/d' "$work/old/config.yaml"
"$lrnn" eval "$work/old" --samples 4 >/dev/null 2>"$work/err" || fail "eval: $(cat "$work/err")"
rm -rf "$work"/old/checkpoints/*8*  # as if stopped after the checkpoint of step 4
train --out "$work/old" --resume
cmp -s "$work/whole/metrics.jsonl" "$work/old/metrics.jsonl" || fail "the resumed run took another way"

"$lrnn" train "$work/c.yaml" model.mixer.accuracy=exact --out "$work/old" --resume >/dev/null 2>"$work/err"
[ $? = 2 ] || fail "another accuracy was taken for the same config"
grep -qF "model.mixer.accuracy: auto -> exact" "$work/err" || fail "it was not said what changed: $(cat "$work/err")"
"$lrnn" show "$work/c.yaml" model.mixer.accuracy=good >/dev/null 2>"$work/err"
[ $? = 2 ] || fail "an accuracy that does not exist was accepted"

[ "$failures" = 0 ] && echo "old config: ok"
