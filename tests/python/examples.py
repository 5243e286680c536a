#!/usr/bin/env python3
"""The scripts of examples/python run from an empty folder and show what they promise."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from lib.harness import run  # first: it skips where there is no torch
import torch

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
empty = tempfile.TemporaryDirectory()


def call(*words):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": empty.name}
    out = subprocess.run([sys.executable, *map(str, words)], cwd=empty.name, env=environment, capture_output=True, text=True)
    assert out.returncode == 0, f"{words}: {out.stdout}{out.stderr}"
    return out.stdout


def check_own_model():
    said = call(FOLDER / "own_model.py", "--steps", 200)
    score = {lo: float(at) for lo, at in re.findall(r"\[(-?\d), 1\].* 32 swaps (\S+)", said)}
    assert score["0"] < 0.6 and score["-1"] > 0.9, said


def check_drop_in_for_fla():
    said = call(FOLDER / "drop_in_for_fla.py")
    assert "refused: [chunk_gated_delta_rule] lrnn has no context parallelism" in said, said
    assert re.search("fla's GatedDeltaNet on|without flash-linear-attention", said), said


def check_probe_a_run():
    said = call(FOLDER / "probe_a_run.py")
    word = re.findall(r"token (\d) +\S+ +([<>])", said)
    assert len(word) == 16, said
    sides = {}
    odd = 0
    for token, side in word:
        odd ^= token == "2"
        sides.setdefault(odd, set()).add(side)
    assert len(sides) == 2 and sides[0] != sides[1] and all(len(side) == 1 for side in sides.values()), said


def check_fsdp2():
    """Two processes with half of the batch each learn what one process learns."""
    launch = lambda processes, *more: call("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes,
                                           FOLDER / "fsdp2.py", "--steps", 8, "--length", 48, *more)
    said = launch(2, "--batch", 2, "--save", "two.pt")
    first, last = (float(loss) for loss in re.findall(r"loss (\S+)", said))
    assert last < first, said
    launch(1, "--batch", 4, "--save", "one.pt")
    two, one = (torch.load(f"{empty.name}/{name}.pt") for name in ("two", "one"))
    assert two.keys() == one.keys()
    for name, weight in two.items():
        assert torch.allclose(weight, one[name], atol=1e-4), name


def check_all_are_run():
    source = pathlib.Path(__file__).read_text()
    for script in FOLDER.glob("*.py"):
        assert script.name in source, f"{script.name} has no test"


run(globals())
