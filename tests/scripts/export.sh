#!/usr/bin/env bash
# `lrnn export` of models that fla lacks, and of one that both have: the sentence is true, and a refusal leaves no folder. Run from the repository root.
. tests/scripts/lib/as_user.sh

# of NAME 'mixer' [override ...]: a run of one update in $work/NAME
of() {
  local name=$1 mixer=$2; shift 2
  printf 'task: {name: parity, train: {length: [3, 4]}, eval: {length: [3, 4], samples: 2}}\n' >"$work/$name.yaml"
  printf 'model: {width: 16, layers: 2, mixer: {%s}}\ntrain: {steps: 1, batch: 2}\n' "$mixer" >>"$work/$name.yaml"
  "$lrnn" train "$work/$name.yaml" "$@" --out "$work/$name" --quiet >/dev/null 2>"$work/err" ||
    fail "training $name: $(cat "$work/err")"
}
# refused NAME 'sentence'
refused() {
  "$lrnn" export "$work/$1" -o "$work/out_$1" >/dev/null 2>"$work/err"
  local got=$?
  [ "$got" = 2 ] || fail "export of $1 ended with $got, not 2"
  grep -qF -- "lrnn: $2" "$work/err" || fail "export of $1 did not say '$2': $(cat "$work/err")"
  [ ! -e "$work/out_$1" ] || fail "export of $1 left a folder"
}

of mamba "name: mamba" "model.mlp.name=none"
refused mamba "fla has no model like this one: mamba with the range [-1, 1]"
of rwkv7 "name: rwkv7"
refused rwkv7 "fla has no model like this one: norm rms with rwkv7"
of slstm "name: slstm"
refused slstm "fla has no model like this one: the mixer slstm"
of learnt "name: delta_product, initial_state: true"
refused learnt "fla has no model like this one: initial_state true"
of hybrid "name: delta_product" "model.hybrid={every: 2, mixer: {name: gla}}"
refused hybrid "fla has no model like this one: two mixers of which not one is attention"

of plain "name: delta_net, conv: 0"
"$lrnn" export "$work/plain" -o "$work/out" --json >"$work/said" 2>"$work/err" || fail "export: $(cat "$work/err")"
grep -q '"model_type": *"delta_net"' "$work/said" || fail "DeltaNet without a convolution became $(cat "$work/said")"
[ -s "$work/out/model.safetensors" ] && [ -s "$work/out/config.json" ] || fail "export wrote nothing"

[ "$failures" = 0 ] && echo "export: ok"
