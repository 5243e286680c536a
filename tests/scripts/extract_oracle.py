#!/usr/bin/env python3
"""`lrnn extract` against automata-lib, which shares no code with it: the model of a random automaton, asked about
its words, must give an automaton with the same language and no more states than automata-lib's minimal one. `make
test` installs automata-lib into .venv/tests; skipped where it cannot be imported."""
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    from automata.fa.dfa import DFA
except ImportError as error:
    print(f"skipped: {error}; scripts/setup.sh tests installs it")
    sys.exit(77)

LRNN = os.environ.get("LRNN", "build/lrnn")
AUTOMATA = 8


def lrnn(*arguments):
    out = subprocess.run([LRNN, *arguments], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert out.returncode == 0, (arguments, out.stdout, out.stderr)
    return out.stdout


def as_dfa(a):
    return DFA(states=set(a["states"]), input_symbols=set(a["alphabet"]), transitions=a["next"], initial_state=a["start"],
               final_states=set(a["accept"]))


def drawn(draw):
    states = [f"q{i}" for i in range(draw.randint(2, 5))]
    return {"alphabet": ["a", "b"], "states": states, "start": "q0",
            "accept": [s for s in states if draw.random() < 0.4] or [states[-1]],
            "next": {s: {x: draw.choice(states) for x in "ab"} for s in states}}


draw = random.Random(19)
sizes = []
with tempfile.TemporaryDirectory() as folder:
    for i in range(AUTOMATA):
        given, model, found = (os.path.join(folder, f"{i}{end}") for end in (".json", "", ".found.json"))
        truth = drawn(draw)
        while len(as_dfa(truth).minify().states) < 2:
            truth = drawn(draw)
        with open(given, "w") as file:
            json.dump(truth, file)
        lrnn("compile", "--automaton", given, "-o", model)
        said = json.loads(lrnn("extract", model, "-o", found, "--longest", "60", "--json"))
        with open(found) as file:
            learnt = json.load(file)
        want, got = as_dfa(truth).minify(), as_dfa(learnt)
        assert got == want, (i, truth, learnt)  # the same words are accepted
        assert len(got.states) == len(want.states) == said["states"], (i, truth, learnt)
        sizes.append(len(got.states))
assert len(set(sizes)) > 1, sizes
print(f"ok: {AUTOMATA} automata of {min(sizes)} to {max(sizes)} states")
