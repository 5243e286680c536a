#!/usr/bin/env python3
"""lrnn against automata-lib, which shares no code with it. Random regular expressions must give its
minimal automata, random automata must be read back unchanged, and the compiled models of both (of
automata, up to five states) must answer to words of up to 300 symbols as automata-lib does. The cases
go to tests/compile/oracle_test.cpp in one file, the first few also through the command line. `make
test` installs automata-lib into .venv/tests; skipped where it cannot be imported."""
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
    print(f"skipped: {error}; scripts/setup.sh tests installs it")
    sys.exit(77)

LRNN = os.environ.get("LRNN", "build/lrnn")
BUILD = os.environ.get("LRNN_BUILD", "build")
EXPRESSIONS, AUTOMATA = 60, 200
WORDS, LONGEST = 12, 300
BY_COMMAND = 4  # of each: starting the program takes longer than answering
COMPILED_STATES = 5


def lrnn(*arguments, text=None):
    # One thread each: several of these run at a time.
    out = subprocess.run([LRNN, *arguments], input=text, capture_output=True, text=True,
                         env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert out.returncode == 0, (arguments, out.stderr)
    return out.stdout


def as_dfa(automaton):
    return DFA(states=set(automaton["states"]), input_symbols=set(automaton["alphabet"]),
               transitions=automaton["next"], initial_state=automaton["start"],
               final_states=set(automaton.get("accept", [])))


def words(draw, symbols):
    """The empty word, the longest ones and some between."""
    lengths = [0, 1, LONGEST, LONGEST] + [draw.randrange(LONGEST) for _ in range(WORDS - 4)]
    return ["".join(draw.choice(symbols) for _ in range(n)) for n in lengths]


def answers(source, given):
    """What the compiled model says to the words, and which states it says it is in."""
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model")
        lrnn("compile", *source, "-o", model)
        text = "".join(w + "\n" for w in given)
        return [lrnn("run", model, *how, text=text).splitlines() for how in ([], ["--states"])]


def end_of(dfa, word):
    """The state that the word leads to."""
    return list(dfa.read_input_stepwise(word, ignore_rejection=True))[-1]


def expression(draw, depth):
    """The same language twice: as a text in our syntax, and built by automata-lib's operations."""
    inner = lambda: expression(draw, depth - 1)
    if depth == 0:
        symbol = draw.choice("ab")
        return symbol, NFA.from_regex(symbol, input_symbols={"a", "b"})
    kind = draw.randrange(9)
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


def as_json(dfa):
    """An automaton of automata-lib in our format, its states named by their numbers."""
    names = {state: str(i) for i, state in enumerate(dfa.states)}
    return {"alphabet": sorted(dfa.input_symbols), "states": list(names.values()),
            "start": names[dfa.initial_state], "accept": [names[s] for s in dfa.final_states],
            "next": {names[s]: {x: names[t] for x, t in row.items()} for s, row in dfa.transitions.items()}}


def one_expression(seed):
    draw = random.Random(seed)
    text, nfa = expression(draw, 3)
    theirs = DFA.from_nfa(nfa).to_complete().minify()
    said = {w: "accept" if theirs.accepts_input(w) else "reject" for w in words(draw, "ab")}
    if seed < BY_COMMAND:
        source = ("--regex", text, "--alphabet", "ab")
        ours = json.loads(lrnn("check", *source, "--json"))["automaton"]
        assert as_dfa(ours) == theirs, text
        answered, states = answers(source, said)
        assert answered == list(said.values()), (seed, text)
        assert states == [end_of(as_dfa(ours), w) for w in said], (seed, text)
    said.pop("")  # the program's business: no token, no answer of the model
    return {"name": text, "regex": text, "alphabet": "ab", "minimal": as_json(theirs),
            "states": len(theirs.states), "words": said}


def one_automaton(seed):
    draw = random.Random(seed)
    states = [f"s{i}" for i in range(draw.randrange(1, 9))]
    given = {"alphabet": ["a", "b", "c"], "states": states, "start": draw.choice(states),
             "accept": [s for s in states if draw.random() < 0.5],
             "next": {s: {x: draw.choice(states) for x in "abc"} for s in states}}
    dfa = as_dfa(given)
    reachable = {given["start"]}
    while more := {t for s in reachable for t in given["next"][s].values()} - reachable:
        reachable |= more
    said = {w: end_of(dfa, w) for w in words(draw, "abc")}
    if seed < BY_COMMAND:
        by_command(given, dfa, reachable, said)
    said.pop("")
    return {"name": f"automaton {seed}", "automaton": given, "states": len(reachable), "words": said}


def by_command(given, dfa, reachable, said):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "automaton.json")
        with open(path, "w") as file:
            json.dump(given, file)
        found = json.loads(lrnn("check", "--automaton", path, "--json"))
        assert as_dfa(found["automaton"]) == dfa, given
        assert set(found["automaton"]["states"]) == reachable, given
        if len(reachable) <= COMPILED_STATES:
            answered, states = answers(("--automaton", path), said)
            assert states == list(said.values()), given
            assert answered == ["accept" if dfa.accepts_input(w) else "reject" for w in said], given


cases = [one_expression(seed) for seed in range(EXPRESSIONS)]
cases += [one_automaton(seed) for seed in range(AUTOMATA)]
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "cases.json")
    with open(path, "w") as file:
        json.dump(cases, file)
    subprocess.run([os.path.join(BUILD, "compile_test"), "--gtest_brief=1", "--gtest_filter=Oracle.*"],
                   env={**os.environ, "LRNN_ORACLE": path}, check=True)
print(f"{EXPRESSIONS} expressions and {AUTOMATA} automata agree with automata-lib")
