"""Runs of `lrnn train`, by one process and by several that torchrun starts, and whether they have the same bits."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import lrnn.program

CONFIGS = pathlib.Path(__file__).parents[3] / "configs"
TINY = CONFIGS / "tiny.yaml"
# Three slices and more: a slice is a multiple of 8,192 parameters.
KEYS = [
    "model.width=64", "model.layers=2", "model.mixer.heads=4", "model.mlp.hidden=96", "train.clip=1", "train.weight_decay=0.1",
    "train.batch=24", "train.threads=1", "train.log_every=1", "train.eval_every=3", "train.checkpoint_every=2",
]  # fmt: skip
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def train(out, *words, config=TINY, keys=KEYS):
    return ["train", str(config), *keys, "--out", str(out), *words]


def together(ranks, *words, options=(), **named):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *options]
    return [*launcher, "-m", "lrnn", *train(*words, **named)]


def done(command, environment=ENVIRONMENT):
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended


def alone(*words, **named):
    command, environment = lrnn.program.command(train(*words, "--quiet", **named))
    return done(command, {**environment, "OMP_NUM_THREADS": "1"})


def files(run_folder, step):
    last = pathlib.Path(run_folder, "checkpoints", f"step-{step:08}")
    return {name: path.read_bytes() for name, path in {
        "metrics": pathlib.Path(run_folder, "metrics.jsonl"), "weights": last / "model.safetensors",
        "moments": last / "optimizer.safetensors"}.items()}  # fmt: skip


def tensors(bits):
    """The bytes of every tensor of a safetensors file."""
    size = int.from_bytes(bits[:8], "little")
    header = json.loads(bits[8:8 + size])
    return {name: bits[8 + size:][slice(*of["data_offsets"])] for name, of in header.items() if name != "__metadata__"}


def first_difference(name, one, other):
    """Where two files of these runs begin to differ, in words."""
    if name == "metrics":
        lines = zip(one.decode().splitlines(), other.decode().splitlines())
        for i, (x, y) in enumerate(lines):
            if x != y:
                return f"first in line {i + 1}: {x} | {y}"
        return "one is shorter"
    one, other = tensors(one), tensors(other)
    differ = [key for key in one if one[key] != other.get(key)]
    return f"{len(differ)} of {len(one)} tensors: {', '.join(differ[:5])}"


def same(a, b, step=6):
    said = []
    for name, bits in files(a, step).items():
        other = files(b, step)[name]
        if bits != other:
            said.append(f"{name} differ, {first_difference(name, bits, other)}")
    assert not said, f"{a} and {b}: " + "; ".join(said)


def workers(launcher):
    """The processes that torchrun started."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:  # it has ended
            continue
        if int(parent) == launcher:
            found.append(int(process.name))
    return sorted(found)


def kill_one(command, run_folder):
    """Runs it, and kills one of its processes after the fifth update of that run."""
    program = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    metrics, killed, limit = pathlib.Path(run_folder, "metrics.jsonl"), False, time.time() + 240
    while program.poll() is None and not killed and time.time() < limit:
        if metrics.exists() and metrics.read_text().count('"train"') >= 5:
            os.kill(workers(program.pid)[-1], signal.SIGKILL)
            killed = True
        time.sleep(0.01)
    _, said = program.communicate(timeout=240)
    assert killed, "the run was over too soon: " + said[-2000:]
    assert program.returncode == 0, said[-2000:]
