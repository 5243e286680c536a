#!/usr/bin/env python3
"""`torchrun -m lrnn train` on CPUs: W processes train what one process trains in W parts, to the bit;
a process that is killed costs nothing but time; a run goes on with another number of processes."""

import json
import pathlib
import subprocess
import tempfile

from lib.harness import run
from lib.together import ENVIRONMENT, TINY, alone, done, kill_one, same, together

import lrnn.program


def check_ranks_are_parts():
    with tempfile.TemporaryDirectory() as folder:
        for ranks in (2, 3, 4):
            alone(f"{folder}/parts{ranks}", "train.steps=6", f"train.accumulate={ranks}")
            said = done(together(ranks, f"{folder}/ranks{ranks}", "train.steps=6"))
            assert said.stdout.count("accuracy") == 1, said.stdout  # the lead alone speaks
            same(f"{folder}/parts{ranks}", f"{folder}/ranks{ranks}")


def check_another_number_of_ranks_goes_on():
    with tempfile.TemporaryDirectory() as folder:
        done(together(2, f"{folder}/run", "train.steps=4"))
        done(together(3, f"{folder}/run", "--resume", "train.steps=6"))
        lines = [json.loads(line) for line in pathlib.Path(folder, "run", "metrics.jsonl").read_text().splitlines()]
        assert [line["step"] for line in lines if line["kind"] == "train"] == [1, 2, 3, 4, 5, 6]


def check_a_killed_rank():
    with tempfile.TemporaryDirectory() as folder:
        steps = "train.steps=60"
        alone(f"{folder}/calm", steps, "train.accumulate=2")
        kill_one(together(2, f"{folder}/disturbed", steps, "--resume", options=["--max-restarts", "1"]), f"{folder}/disturbed")
        same(f"{folder}/calm", f"{folder}/disturbed", step=60)


def refused(command):
    ended = subprocess.run(command, env={**ENVIRONMENT, "CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True, timeout=120)
    assert ended.returncode != 0, ended.stdout
    return ended


def check_refusals():
    ended = refused(lrnn.program.command(["train", str(TINY), "--group", "nobody"])[0])
    assert ended.returncode == 2 and "there is no process group 'nobody'" in ended.stderr and "torchrun" in ended.stderr, ended.stderr
    with tempfile.TemporaryDirectory() as folder:
        said = refused(together(2, f"{folder}/run", "train.batch=1")).stderr
        assert "need a sequence for every part" in said, said[-2000:]
        for device, sentence in (("cuda:1", "--device must be cpu or cuda, got 'cuda:1'"), ("cuda", "no CUDA device was found")):
            said = refused(together(2, f"{folder}/{device}", "--device", device)).stderr
            assert said.count(sentence) == 1 and not pathlib.Path(folder, device).exists(), said[-2000:]


run(globals())
