#!/usr/bin/env python3
"""lrnn check against automata-lib, which shares no code with it: random regular expressions must
give its minimal automata, random automata must be read back unchanged, and words of up to 300
symbols must end alike. Skipped where automata-lib cannot be imported."""
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    from automata.fa.dfa import DFA
    from automata.fa.nfa import NFA
except ImportError as error:
    print(f"skipped: {error}; pip install automata-lib")
    sys.exit(77)

LRNN = os.environ.get("LRNN", "build/lrnn")
EXPRESSIONS, AUTOMATA = 25, 20


def check(*arguments):
    out = subprocess.run([LRNN, "check", *arguments, "--json"], capture_output=True, text=True)
    assert out.returncode == 0, (arguments, out.stderr)
    return json.loads(out.stdout)


def as_dfa(automaton):
    return DFA(states=set(automaton["states"]), input_symbols=set(automaton["alphabet"]),
               transitions=automaton["next"], initial_state=automaton["start"],
               final_states=set(automaton.get("accept", [])))


def expression(depth):
    """The same language twice: as a text in our syntax, and built by automata-lib's operations."""
    inner = lambda: expression(depth - 1)
    if depth == 0:
        symbol = random.choice("ab")
        return symbol, NFA.from_regex(symbol, input_symbols={"a", "b"})
    kind = random.randrange(9)
    left, nfa = inner()
    if kind < 3:
        right, other = inner()
        return f"({left}){right}" if kind else f"({left}|{right})", nfa + other if kind else nfa | other
    if kind == 3:
        return f"({left})*", nfa.kleene_star()
    if kind == 4:
        return f"({left}|)", nfa.option()
    if kind == 5:
        return f"({left}){{2}}", nfa + nfa
    if kind == 6:
        return f"({left}){{1,2}}", nfa + nfa.option()
    dfa = DFA.from_nfa(nfa)
    if kind == 7:
        return f"(!({left}))", NFA.from_dfa(dfa.complement())
    right, other = inner()
    return f"(({left})&({right}))", NFA.from_dfa(dfa & DFA.from_nfa(other))


def expressions():
    for seed in range(EXPRESSIONS):
        random.seed(seed)
        text, nfa = expression(3)
        ours = check("--regex", text, "--alphabet", "ab")["automaton"]
        theirs = DFA.from_nfa(nfa).to_complete().minify()
        assert len(ours["states"]) == len(theirs.states), (text, ours, theirs)
        dfa = as_dfa(ours)
        assert dfa == theirs, text
        for _ in range(5):
            word = [random.choice("ab") for _ in range(random.randrange(300))]
            assert dfa.accepts_input(word) == theirs.accepts_input(word), (text, word)


def automata(folder):
    for seed in range(AUTOMATA):
        random.seed(seed)
        states = [f"s{i}" for i in range(random.randrange(1, 9))]
        given = {"alphabet": ["a", "b", "c"], "states": states, "start": "s0",
                 "accept": [s for s in states if random.random() < 0.5],
                 "next": {s: {x: random.choice(states) for x in "abc"} for s in states}}
        path = os.path.join(folder, "automaton.json")
        with open(path, "w") as file:
            json.dump(given, file)
        found = check("--automaton", path)
        dfa, ours = as_dfa(given), as_dfa(found["automaton"])
        assert ours == dfa, given
        reachable = {"s0"}
        while more := {t for s in reachable for t in given["next"][s].values()} - reachable:
            reachable |= more
        assert set(found["automaton"]["states"]) == reachable, given
        assert found["class"]["states"] == len(reachable)


with tempfile.TemporaryDirectory() as folder:
    expressions()
    automata(folder)
print(f"{EXPRESSIONS} expressions and {AUTOMATA} automata agree with automata-lib")
