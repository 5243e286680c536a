#!/usr/bin/env bash
# Automata with accepting states answer accept or reject; --states tells the state, from the model.
. tests/scripts/lib/as_user.sh
set -eo pipefail
said() { "$lrnn" run "$@" | tr '\n' ' '; }

next='"next":{"even":{"a":"odd","b":"even"},"odd":{"a":"even","b":"odd"}}}'
head='{"alphabet":["a","b"],"states":["even","odd"],"start":"even",'
echo "$head\"accept\":[\"even\"],$next" >"$work/accept.json"
echo "$head$next" >"$work/states.json"
edges='even -> odd -> even [label=a] even -> even [label=b] odd -> odd [label=b] }'
echo "digraph { s [shape=point] s -> even; even [shape=doublecircle] $edges" >"$work/accept.dot"
echo "digraph { s [shape=point] s -> even; $edges" >"$work/states.dot"

words='ab\n\nabba\n'
for kind in json dot; do
  "$lrnn" compile --automaton "$work/accept.$kind" -o "$work/accept_$kind" >"$work/out"
  grep -q 'answers accept or reject' "$work/out" || fail "compile does not say what is answered"
  equal "$kind with accept" "$(printf "$words" | said "$work/accept_$kind")" "reject accept accept "
  "$lrnn" check --automaton "$work/states.$kind" --json | grep -q '"recogniser":false' || fail "$kind without accept"
done
equal "--states" "$(printf "$words" | said "$work/accept_json" --states)" "odd even even "
"$lrnn" compile --automaton "$work/states.dot" -o "$work/states_dot" >/dev/null
equal "without accept" "$(printf "$words" | said "$work/states_dot")" "odd even even "
"$lrnn" explain "$work/accept_dot" >/dev/null
equal "double circles" "$(grep -o '<circle class="paper axis"' "$work/accept_dot/explain.html" | wc -l | tr -d ' ')" 3
equal "verify" "$(code "$lrnn" verify "$work/accept_json" --tokens 500)" 0
equal "verify against the file" "$(code "$lrnn" verify "$work/accept_json" --tokens 200 --automaton "$work/accept.json")" 0
grep -q 'compared with the automaton named' "$work/out" || fail "verify calls a compiled model trained"
"$lrnn" eval "$work/accept_json" --samples 4 | grep -q 'accuracy 1.0000' || fail "eval"

# All ways to ask give the same states; the empty word is in the start state.
"$lrnn" compile --regex '(ab|ba)*' --alphabet ab -o "$work/abba" >/dev/null
"$lrnn" compile --regex '(ab|ba)*' --alphabet ab --states -o "$work/abba_states" >/dev/null
words='abba\na\n\nabb\nbbbb\n'
want="0 1 0 2 3 "
equal "a regex" "$(printf "$words" | said "$work/abba")" "accept reject accept reject reject "
equal "its states" "$(printf "$words" | said "$work/abba" --states)" "$want"
equal "its states, step by step" "$(printf "$words" | said "$work/abba" --states --step 2>/dev/null)" "$want"
equal "compiled with states" "$(printf "$words" | said "$work/abba_states")" "$want"
equal "states after every letter" "$(echo abb | said "$work/abba" --states --every --json)" '{"answers":["1","0","2"]} '
head -c 40000 /dev/zero | tr '\0' 'b' >"$work/long"
equal "of a long word" "$(said "$work/abba" --states <"$work/long")" "3 "
# A model of states is compared with a recogniser state by state.
equal "verify states" "$(code "$lrnn" verify "$work/abba_states" --tokens 200 --regex '(ab|ba)*' --alphabet ab)" 0

# Training goes on from either; where a trained recogniser keeps its state is not known.
for kind in abba abba_states; do
  "$lrnn" train --from "$work/$kind" train.steps=1 train.batch=2 train.lr=1e-7 task.eval.length=16 --out "$work/${kind}_tuned" --quiet >/dev/null
done
equal "states of a tuned recogniser" "$(code "$lrnn" run "$work/abba_tuned" --states)" 2
grep -q 'compile … --states' "$work/err" || fail "it is not said how to get states"
equal "states of tuned states" "$(echo abb | said "$work/abba_states_tuned" --states)" "2 "
echo ok
