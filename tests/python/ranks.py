#!/usr/bin/env python3
"""`torchrun -m lrnn train` on CPUs: W processes train what one process trains in W parts, to the bit;
a process that is killed costs nothing but time; a run goes on with another number of processes."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from lib.harness import run

import lrnn.program

TINY = pathlib.Path(__file__).parents[2] / "configs" / "tiny.yaml"
# Three slices and more: a slice is a multiple of 8,192 parameters.
KEYS = [
    "model.width=64", "model.layers=2", "model.mixer.heads=4", "model.mlp.hidden=96", "train.clip=1", "train.weight_decay=0.1",
    "train.batch=24", "train.threads=1", "train.log_every=1", "train.eval_every=3", "train.checkpoint_every=2",
]  # fmt: skip
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def together(ranks, out, *words, options=()):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *options]
    return [*launcher, "-m", "lrnn", "train", str(TINY), *KEYS, "--out", str(out), *words]


def done(command):
    ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended


def alone(out, *words):
    return done([*lrnn.program.command(["train", str(TINY), *KEYS, "--out", str(out), "--quiet", *words])[0]])


def files(run_folder, step):
    last = pathlib.Path(run_folder, "checkpoints", f"step-{step:08}")
    return {name: path.read_bytes() for name, path in {
        "metrics": pathlib.Path(run_folder, "metrics.jsonl"), "weights": last / "model.safetensors",
        "moments": last / "optimizer.safetensors"}.items()}  # fmt: skip


def same(a, b, step=6):
    for name, bits in files(a, step).items():
        assert bits == files(b, step)[name], f"{name} of {a} and {b} differ"


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


def workers(launcher):
    """The processes that torchrun started."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(launcher)], capture_output=True, text=True).stdout
    return [int(word) for word in found.split()]


def check_a_killed_rank():
    with tempfile.TemporaryDirectory() as folder:
        steps = "train.steps=60"
        alone(f"{folder}/calm", steps, "train.accumulate=2")
        disturbed = pathlib.Path(folder, "disturbed")
        program = subprocess.Popen(
            together(2, disturbed, steps, "--resume", options=["--max-restarts", "1"]), env=ENVIRONMENT,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
        metrics, killed, limit = disturbed / "metrics.jsonl", False, time.time() + 240
        while program.poll() is None and not killed and time.time() < limit:
            if metrics.exists() and metrics.read_text().count('"train"') >= 5:
                os.kill(workers(program.pid)[-1], signal.SIGKILL)
                killed = True
            time.sleep(0.01)
        _, said = program.communicate(timeout=240)
        assert killed, "the run was over too soon"
        assert program.returncode == 0, said[-2000:]
        same(f"{folder}/calm", disturbed, step=60)


def check_refusals():
    ended = subprocess.run(lrnn.program.command(["train", str(TINY), "--group", "nobody"])[0], capture_output=True, text=True)
    assert ended.returncode == 2 and "there is no process group 'nobody'" in ended.stderr and "torchrun" in ended.stderr, ended.stderr
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            together(2, f"{folder}/run", "train.batch=1"), env=ENVIRONMENT, capture_output=True, text=True, timeout=120)  # fmt: skip
        assert ended.returncode != 0 and "need a sequence for every part" in ended.stderr, ended.stderr[-2000:]


run(globals())
