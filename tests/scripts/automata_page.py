#!/usr/bin/env python3
"""docs/automata.md is true: its files are read by `lrnn check`, and its sessions print what they say."""
import os
import re
import subprocess
import sys
import tempfile

lrnn = os.path.abspath(os.environ.get("LRNN", "build/lrnn"))
page = open("docs/automata.md", encoding="utf-8").read()
blocks = re.findall(r"(?:`([\w.]+)`:\n\n)?```(json|dot|console)\n(.*?)```", page, re.S)
names = {name for name, _, _ in blocks if name}
assert names == {"even.json", "even.dot", "only_ab.json"}, names
assert sum(kind == "console" for _, kind, _ in blocks) == 3

failures = 0


def fail(text):
    global failures
    failures += 1
    print("FAIL:", text)


def session(text, folder):
    """Lines after '$ ' are run; what follows must be printed, '…' stands for any lines."""
    for command, want in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
        out = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True,
                             env={**os.environ, "PATH": folder + ":" + os.environ["PATH"]})
        if out.returncode != 0:
            fail(f"{command}: {out.stderr}")
        got, want = out.stdout.splitlines(), want.splitlines()
        if want and want[-1] == "…":
            want.pop()
            got = got[:len(want)]
        if got != want:
            fail(f"{command} printed {got}, not {want}")


with tempfile.TemporaryDirectory() as folder:
    os.symlink(lrnn, os.path.join(folder, "lrnn"))
    for name, kind, text in blocks:
        if kind == "console":
            session(text, folder)
            continue
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        out = subprocess.run([lrnn, "check", "--automaton", path], capture_output=True, text=True)
        if out.returncode != 0:
            fail(f"{name}: {out.stderr}")
    # Both formats say the same.
    found = [subprocess.run([lrnn, "check", "--automaton", os.path.join(folder, "even." + kind), "--json"],
                            capture_output=True, text=True).stdout for kind in ("json", "dot")]
    cut = lambda text: text[text.index('"recogniser"'):]
    if cut(found[0]) != cut(found[1]):
        fail("even.json and even.dot differ")

sys.exit(failures > 0)
