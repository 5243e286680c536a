#!/usr/bin/env bash
# How a run goes on, is made longer, is replaced; and what a damaged checkpoint makes every command say.
. tests/scripts/lib/as_user.sh

sums() { (cd "$1" && sha256sum metrics.jsonl checkpoints/step-00000040/{model,optimizer}.safetensors); }

# --- a folder is no config, and the run in it says what to add
run="$work/my run"
expect 0 "" "$lrnn" train configs/tiny.yaml --out "$run" --quiet
cp -r "$run" "$work/whole"
cp "$run/metrics.jsonl" "$work/metrics"
expect 2 "lrnn train '$run' --resume" "$lrnn" train "$run"
expect 2 "is a folder without a run in it" "$lrnn" train configs
expect 2 "leave one of them out" "$lrnn" train "$run" --resume --overwrite
expect 2 "does not exist" "$lrnn" train --resume --out "$work/none"
[ ! -e "$work/none" ] || fail "a run that is not there left a folder"

# --- its own config is enough to go on; one that is over says how to make it longer
expect 0 "train.steps=40" "$lrnn" train "$run" --resume
expect 0 "" "$lrnn" train --resume --out "$run" --quiet --json
[ "$(value 'd["step"], d["damaged"]')" = "20 []" ] || fail "resume: $(cat "$work/out")"
expect 2 "train.lr: 0.01 -> 0.5" "$lrnn" train "$run" --resume train.lr=0.5
expect 0 "" "$lrnn" train "$run" --resume train.steps=40 --quiet --json
[ "$(value 'd["step"]')" = 40 ] || fail "train.steps=40 ended at $(value 'd["step"]')"
grep -qF '{"kind":"extended","step":20,"steps":{"from":20,"to":40}}' "$run/metrics.jsonl" || fail "metrics.jsonl does not say that the run was extended"
python3 -c "import json,sys; assert json.load(open(sys.argv[1]))['step'] == 40" "$run/result.json" || fail "result.json does not follow"
expect 2 "at step 40 already" "$lrnn" train "$run" --resume train.steps=30
# The file says 20 steps: that alone shortens nothing.
expect 2 "train.steps: 40 -> 20" "$lrnn" train configs/tiny.yaml --out "$run" --resume
expect 0 "" "$lrnn" train --resume train.steps=40 --out "$work/whole" --quiet
diff <(sums "$run") <(sums "$work/whole") || fail "two ways to say it, two results"

# --- killed in the middle of the extension
cp -r "$run" "$work/killed"
rm -rf "$work/killed"/checkpoints/step-000000{3,4}0 "$work/killed/result.json"
printf '{"kind":"train","st' >>"$work/killed/metrics.jsonl"  # as after step 20, config.yaml already says 40
expect 0 "" "$lrnn" train "$work/killed" --resume --quiet
diff <(sums "$run") <(sums "$work/killed") || fail "a killed extension went on to other bytes"

# --- train.stop_at ended it
expect 0 "" "$lrnn" train configs/tiny.yaml train.stop_at=0.01 --out "$work/early" --quiet
expect 0 "train.stop_at=0" "$lrnn" train "$work/early" --resume
expect 2 "ended at step 10" "$lrnn" train "$work/early" --resume train.steps=30
expect 0 "" "$lrnn" train "$work/early" --resume train.stop_at=0 train.steps=30 --quiet --json
[ "$(value 'd["step"]')" = 30 ] || fail "a run that train.stop_at ended does not go on"

# --- Ctrl-C: the line it prints is a command that goes on
"$lrnn" train configs/tiny.yaml train.steps=1000000 train.eval_every=0 --out "$work/long run" >"$work/out" 2>"$work/err" &
child=$!
for _ in $(seq 600); do grep -q "^step" "$work/err" && break; sleep 0.1; done
kill -INT $child; wait $child; code=$?
[ $code = 130 ] || fail "an interrupted run ended with $code"
line=$(sed -n 's/^go on with: //p' "$work/err")
[ "$line" = "lrnn train '$work/long run' --resume" ] || fail "it says: $line"
step=$(sed -n 's/^interrupted at step \([0-9]*\) .*/\1/p' "$work/err")
eval "expect 0 '' \"\$lrnn\" ${line#lrnn } train.steps=$((step + 1)) --quiet --json"
[ "$(value 'd["step"]')" = $((step + 1)) ] || fail "it does not go on from step $step"

# --- kill -9 in the first steps blocks nothing
"$lrnn" train configs/tiny.yaml train.steps=1000000 train.eval_every=0 train.checkpoint_every=0 --out "$work/died" >/dev/null 2>"$work/err" &
child=$!
for _ in $(seq 600); do grep -q "^step" "$work/err" && break; sleep 0.1; done
expect 2 "another process is training in" "$lrnn" train configs/tiny.yaml --out "$work/died" --overwrite
kill -9 $child; wait $child 2>/dev/null
expect 2 "ended before its first checkpoint" "$lrnn" train configs/tiny.yaml --out "$work/died"
grep -q -- "--resume .* --overwrite" "$work/err" || fail "no way out is offered"
expect 0 "" "$lrnn" train "$work/died" --resume train.steps=5 --quiet
expect 0 "" "$lrnn" train configs/tiny.yaml --out "$work/died" --overwrite --quiet
expect 0 "" "$lrnn" train "$work/died" --overwrite --quiet
cmp -s "$work/died/metrics.jsonl" "$work/metrics" || fail "a run that is trained once more is another run"
touch "$work/died/notes"
expect 2 "not part of a run: notes" "$lrnn" train configs/tiny.yaml --out "$work/died" --overwrite
[ -e "$work/died/result.json" ] || fail "a refused --overwrite removed something"

# --- one changed byte: every command names the file, and --json too
expect 0 "" "$lrnn" compile --group Z2 -o "$work/z2"
cp -r "$work/z2/checkpoints/step-00000000" "$work/z2/checkpoints/step-00000001"
printf x | dd of="$work/z2/checkpoints/step-00000001/model.safetensors" bs=1 seek=200 conv=notrunc 2>/dev/null
printf x | dd of="$run/checkpoints/step-00000040/model.safetensors" bs=1 seek=2000 conv=notrunc 2>/dev/null
said="warning: $run/checkpoints/step-00000040/model.safetensors is damaged: its checksum is not the one in manifest.json; using step 30"
damaged='"model.safetensors is damaged" in d["damaged"][0]'
for words in eval spectrum "verify --tokens 100" "export -o $work/exported"; do
  set -- $words; command=$1; shift
  code=0; [ $command != verify ] || code=1
  expect $code "$said" "$lrnn" $command "$run" "$@" --json
  [ "$(value "$damaged")" = True ] || fail "$command --json does not name the damaged file: $(cat "$work/out")"
done
expect 0 "$said" "$lrnn" run "$run"
expect 0 "model.safetensors is damaged" "$lrnn" explain "$work/z2" --json
[ "$(value "$damaged")" = True ] || fail "explain --json does not name the damaged file"
expect 0 "$said" "$lrnn" train --from "$run" train.steps=1 --out "$work/tuned" --quiet --json
[ "$(value "$damaged")" = True ] || fail "train --from --json does not name the damaged file"
expect 0 "step-00000040/model.safetensors is damaged" "$lrnn" train "$run" --resume --quiet --json
[ "$(value "$damaged")" = True ] || fail "train --resume --json does not name the damaged file"
diff <(sums "$run") <(sums "$work/whole") || fail "the damaged step was not made again"

[ $failures = 0 ] && echo "resume: all is well"
