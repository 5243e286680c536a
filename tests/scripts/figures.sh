#!/usr/bin/env bash
# eval by length, of one run and of several; spectrum of what is and is not linear; the report of
# reproduce without a run. Everything is tiny: nothing is learnt here.
. tests/scripts/lib/as_user.sh
export OMP_NUM_THREADS=1  # these models are too small to share
tiny() { # tiny NAME keys...
  local out="$work/$1"; shift
  "$lrnn" train configs/tiny.yaml train.steps=2 train.threads=1 "$@" --out "$out" --quiet >/dev/null || fail "training $out"
}
tiny both
tiny positive "model.mixer.range=[0, 1]"
tiny slstm "model.mixer={name: slstm, heads: 2}"
tiny mlstm "model.mixer={name: mlstm, heads: 2}"
tiny attention "model.mixer={name: attention}"
tiny mod3 "task={name: modular_addition, modulus: 3, train: {length: 8}, eval: {length: 12, samples: 16}}"

# --- lengths: a range, a list, one; anything else is refused and loses nothing
cd "$work" || exit 1
expect 0 "" "$lrnn" eval both --lengths 3:10 --samples 64
cp both/eval/length.csv range.csv
[ "$(wc -l <range.csv)" = 9 ] || fail "3:10 has $(wc -l <range.csv) lines, not the head and 8 lengths"
expect 0 "" "$lrnn" eval both --lengths 3-10 --samples 64
cmp -s both/eval/length.csv range.csv || fail "3-10 is not 3:10"
for bad in 4..9 '4;9' 3:10x 10:3 0:4 '' 3,,4 99999999999999999999; do
  expect 2 "--lengths must be" "$lrnn" eval both --lengths "$bad"
done
cmp -s both/eval/length.csv range.csv || fail "a refused --lengths overwrote the table"
expect 0 "" "$lrnn" eval both --lengths 3,10,100 --samples 64
[ "$(cut -d, -f1,2 both/eval/length.csv | tr '\n' ' ')" = "length_low,length_high 3,3 10,10 100,100 " ] ||
  fail "3,10,100 evaluated $(cut -d, -f1,2 both/eval/length.csv)"
says "64 sequences of length 3, 10 and 100"
expect 0 "" "$lrnn" eval both --lengths 7 --samples 64 --json
[ "$(value '[(b["low"], b["high"], b["count"]) for b in d["lengths"]]')" = "[(7, 7, 64)]" ] || fail "--lengths 7"
[ "$(value 'sorted(d)')" = "['csv', 'damaged', 'evaluation', 'figure', 'lengths', 'run', 'step']" ] || fail "the object of one run: $(value 'sorted(d)')"
[ "$(value 'd["figure"]')" = both/figures/length.svg ] || fail "where the figure of one run is"

# --- twins in one table and one figure
expect 0 "" "$lrnn" eval positive both --lengths 4,9 --samples 64
says "positive: DeltaNet [0,1]"; says "both: DeltaNet [-1,1]"; says "figure: positive/figures/lengths.svg"
expect 0 "" "$lrnn" eval positive both --lengths 4,9 --samples 64 -o twins.svg --json
[ "$(value '([r["run"] for r in d["runs"]], d["figure"])')" = "(['positive', 'both'], 'twins.svg')" ] || fail "JSON of two runs"
python3 -c "import xml.dom.minidom as x; x.parse('twins.svg'); x.parse('positive/figures/lengths.svg')" || fail "the common figure"
for run in positive both; do [ "$(wc -l <$run/eval/length.csv)" = 3 ] || fail "the table of $run"; done
expect 2 "both and mod3 have different tasks" "$lrnn" eval both mod3
expect 2 "named twice" "$lrnn" eval both both
[ ! -e mod3/eval/length.csv ] || fail "a refused evaluation wrote something"

# --- spectrum says what its numbers are
expect 0 "" "$lrnn" spectrum both --samples 2; says "product of factors"; says "at 1"
grep -q '>at 0<' both/figures/spectrum.svg && grep -q '>at 1<' both/figures/spectrum.svg || fail "letters without a legend"
expect 0 "" "$lrnn" spectrum slstm --samples 2; says "is not linear"; says "Jacobian"; says "fit 1"
expect 0 "" "$lrnn" spectrum slstm --samples 2 --json
[ "$(value '(d["heads"][0]["kind"], "not linear" in d["kinds"]["jacobian"])')" = "('jacobian', True)" ] || fail "kind of slstm"
expect 0 "" "$lrnn" spectrum mlstm --samples 2; says "Forget gates"
expect 0 "" "$lrnn" spectrum both mlstm --samples 2 --json -o two.svg
[ "$(value 'sorted(d["kinds"])')" = "['forget_gate', 'householders']" ] || fail "kinds of two runs"
expect 2 "attention multiplies no state" "$lrnn" spectrum attention

# --- tables and page again, without a run
cell=("$lrnn" reproduce quick --only 'mamba,[0,1]' --seeds 1 --out reproduced train.steps=2 task.eval.samples=64 --quiet)
expect 2 "no run of this table is finished" "${cell[@]}" --report
[ ! -e reproduced ] || fail "--report left a folder behind"
expect 0 "" "${cell[@]}"
cp reproduced/quick/report.html before.html
rm reproduced/quick/report.html reproduced/quick/table.*
expect 0 "" "${cell[@]}" --report
cmp -s before.html reproduced/quick/report.html || fail "--report makes another page"
[ "$(find reproduced -name train.log -newer before.html | wc -l)" = 0 ] || fail "--report ran something"
[ "$failures" = 0 ] && echo "figures: all is well"
