#!/usr/bin/env bash
# The keys of configs: listed, read from files and from the command line, and what is refused.
# Run from the repository root.
. tests/scripts/lib/as_user.sh

is() { [ "$(value "$1")" = "$2" ] || fail "$1 is '$(value "$1")', not '$2'"; }

# --- the reference is what the program prints
expect 0 "" "$lrnn" show --keys --markdown
cmp -s "$work/out" docs/reference.md ||
  fail "docs/reference.md is out of date: lrnn show --keys --markdown > docs/reference.md"
expect 0 "" "$lrnn" train --keys
grep -qF "train.steps: 20000            optimiser updates (whole number, at least 1)" "$work/out" || fail "train --keys"
grep -qF "task.regex" "$work/out" || fail "train --keys does not list the tasks' keys"
cp "$work/out" "$work/all"
expect 0 "" "$lrnn" show --keys
cmp -s "$work/out" "$work/all" || fail "show --keys and train --keys differ"
expect 0 "" "$lrnn" train --keys --json
is '[k["default"] for k in d["keys"] if k["key"] == "train.batch"][0]' 256
is '[t["name"] for t in d["tasks"]].count("automaton")' 1
expect 0 "" "$lrnn" show configs/tiny.yaml train.steps=1e3 --keys
grep -qF "train.steps: 1000 " "$work/out" || fail "show CONFIG --keys does not give values"
grep -qF "default 20000" "$work/out" || fail "show CONFIG --keys does not give defaults"
grep -qF "model.mixer.heads: 2 " "$work/out" || fail "show CONFIG --keys does not list the mixer's keys"
grep -qF "model.mixer.expand" "$work/out" && fail "show CONFIG --keys lists another mixer's keys"
expect 0 "" "$lrnn" train configs/tiny.yaml --keys --json
is '[k["value"] for k in d["keys"] if k["key"] == "task.train.length"][0]' "[3, 12]"
is '[k["value"] for k in d["keys"] if k["key"] == "model.mixer.name"][0]' delta_product
expect 2 "belongs to --keys" "$lrnn" show --markdown
expect 2 "leave out the config" "$lrnn" show configs/tiny.yaml --keys --markdown
expect 2 "no config was given" "$lrnn" show

# --- names that were meant
expect 2 "did you mean 'delta_net'?" "$lrnn" show configs/tiny.yaml model.mixer.name=deltanet
expect 2 "did you mean 'even_pairs'?" "$lrnn" tasks show EvenPairs

# --- whole numbers, and texts to the letter
show="$lrnn show configs/tiny.yaml --json"
expect 0 "" $show train.steps=1.5e3 train.batch=32.0
is 'd["config"]["train"]["steps"], d["config"]["train"]["batch"]' "1500 32"
expect 2 "must be a whole number, got '1.5'" $show train.steps=1.5
expect 2 "must be a whole number between" $show train.steps=1e40
for regex in '!(ab)*' '[ab]' 'null'; do
  expect 0 "" $show 'task={name: automaton, alphabet: abnul}' "task.regex=$regex"
  is 'd["config"]["task"]["regex"]' "$regex"
done
expect 0 "" $show 'task={name: automaton, regex: "0*", train: {length: 3}}' task.alphabet=01
is 'd["config"]["task"]["alphabet"]' 01
expect 2 "" $show 'task={name: automaton, alphabet: ab}' "task.regex='ab'"  # the quotes are no letters
expect 0 "" $show 'model.mixer={name: mamba}' model.mixer.conv=1
is 'd["config"]["model"]["mixer"]["name"]' mamba
# It is the complement that is followed, not the empty word.
expect 0 "" "$lrnn" tasks show automaton 'regex=!(ab)*' alphabet=ab train.length=2 --count 40
grep -qF "a b -> accept reject" "$work/out" || fail "the answers to !(ab)*: $(head -3 "$work/out")"
printf 'task:\n  name: automaton\n  alphabet: ab\n  regex: !(ab)*\nmodel: {mixer: {name: delta_net}}\n' >"$work/tag.yaml"
expect 2 "tag.yaml:4: '!(ab)*' is read as a YAML tag" "$lrnn" show "$work/tag.yaml"
grep -qF "put quotes around it: '!(ab)*'" "$work/err" || fail "no hint for a tag: $(cat "$work/err")"

# --- what is no file is one sentence and a hint
one_sentence() {  # one_sentence 'text' command ...
  expect 2 "$@"
  [ "$(wc -l <"$work/err")" = 2 ] || fail "$* said: $(cat "$work/err")"
  grep -qE "basic_|filebuf|iostream" "$work/err" && fail "$* said: $(cat "$work/err")"
}
group="task={name: group, group: S3, train: {length: 4}, eval: {length: 4}}"
folder="is a folder, not a file"
one_sentence "configs $folder" "$lrnn" show configs
one_sentence "configs is a folder without a run in it" "$lrnn" train configs --out "$work/never"
one_sentence "configs $folder" "$lrnn" check --automaton configs
one_sentence "configs $folder" "$lrnn" show configs/tiny.yaml "$group" task.train.file=configs
one_sentence "/dev/null is empty" "$lrnn" show /dev/null
one_sentence "is not a text file" "$lrnn" show "$lrnn"
one_sentence "is not a text file" "$lrnn" check --automaton "$lrnn"
one_sentence "there is no file $work/no" "$lrnn" show "$work/no"
for file in README.md /dev/null configs; do
  one_sentence "neither a run nor a checkpoint" "$lrnn" train --from "$file" --out "$work/never"
done
if [ "$(id -u)" != 0 ]; then
  echo "seed: 1" >"$work/secret"; chmod 000 "$work/secret"
  one_sentence "Permission denied" "$lrnn" show "$work/secret"
fi

# --- what does not fit into memory is refused before it is taken
cat >"$work/peak.py" <<'PY'
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, done.returncode, done.stderr)
PY
python3 "$work/peak.py" "$lrnn" train configs/tiny.yaml model.width=1000000 model.mlp.hidden=1000000 --out "$work/never" >"$work/peak"
read -r megabytes code said <"$work/peak"
[ "$code" = 2 ] || fail "a model of a million units ended with $code: $said"
[ "$megabytes" -lt 1000 ] || fail "refusing a model took $megabytes MB"
grep -q "training this config needs about [78][0-9] TB (weights 12 TB, .* free" "$work/peak" || fail "$(cat "$work/peak")"
grep -qF -- "--force" "$work/peak" || fail "nobody speaks of --force"
expect 2 "train.batch" "$lrnn" train configs/tiny.yaml task.train.length=1e8 --out "$work/never"
[ ! -e "$work/never" ] || fail "a run that was refused left a folder"
expect 0 "" "$lrnn" train configs/tiny.yaml train.steps=2 --force --quiet --out "$work/forced"
expect 0 "" "$lrnn" show configs/tiny.yaml model.width=1e6 model.mlp.hidden=1e6 --json
is 'd["memory"]["weights"] == 4 * d["parameters"] and d["memory"]["total"] > 2e13' True

[ $failures = 0 ] && echo "keys: all is well"
