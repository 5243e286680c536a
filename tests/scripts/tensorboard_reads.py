#!/usr/bin/env python3
"""What `lrnn train --tensorboard` writes, read by TensorBoard's own code (PyPI `tensorboard`, its
event accumulator): the points are those of metrics.jsonl, also of a run that was killed and resumed,
and the file is whole. `make test` installs it into .venv/tests; skipped where it cannot be imported."""
import glob
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.getcwd(), ".venv", "tests"))
try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    print(f"skipped: {error}; scripts/setup.sh tests installs it")
    sys.exit(77)

LRNN = os.environ.get("LRNN", "build/lrnn")
TAGS = {"train": ["loss", "accuracy", "lr", "grad_norm"], "eval": ["loss", "accuracy", "scaled"]}


def lrnn(*arguments):
    out = subprocess.run([LRNN, *arguments], capture_output=True, text=True)
    assert out.returncode == 0, (arguments, out.stderr)


def check(run, files):
    """Every number of metrics.jsonl is there once, and nothing else."""
    assert len(glob.glob(run + "/tensorboard/events.out.tfevents.*")) == files
    events = EventAccumulator(run + "/tensorboard", size_guidance={"scalars": 0})
    events.Reload()
    lines = [json.loads(line) for line in open(run + "/metrics.jsonl")]
    assert events.file_version == 2.0
    assert sorted(events.Tags()["scalars"]) == sorted(f"{kind}/{key}" for kind in TAGS for key in TAGS[kind])
    for kind, keys in TAGS.items():
        for key in keys:
            found = [(e.step, e.value) for e in events.Scalars(f"{kind}/{key}")]
            wanted = [(line["step"], line[key]) for line in lines if line["kind"] == kind]
            assert [step for step, _ in found] == [step for step, _ in wanted], (kind, key, found, wanted)
            assert all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-30) for (_, a), (_, b) in zip(found, wanted))
    now = time.time()
    assert all(now - 600 < e.wall_time <= now for e in events.Scalars("train/loss"))


def killed(run):
    """kill -9 beyond the newest checkpoint, so that points are written which are to be taken back."""
    process = subprocess.Popen([LRNN, "train", "configs/tiny.yaml", "train.steps=1000000", "train.log_every=1",
                                "train.eval_every=300", "train.checkpoint_every=100", "train.keep=1",
                                "--out", run, "--tensorboard"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        assert process.poll() is None
        made = glob.glob(run + "/checkpoints/step-*")
        lines = sum(1 for _ in open(run + "/metrics.jsonl")) if os.path.exists(run + "/metrics.jsonl") else 0
        if made and lines > 330:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return max(int(folder[-8:]) for folder in glob.glob(run + "/checkpoints/step-????????"))


with tempfile.TemporaryDirectory() as work:
    lrnn("train", "configs/tiny.yaml", "--out", work + "/plain", "--tensorboard", "--quiet")
    check(work + "/plain", files=1)
    lrnn("train", work + "/plain", "--resume", "train.steps=40", "--quiet")  # goes on by itself
    check(work + "/plain", files=2)
    step = killed(work + "/killed")
    lrnn("train", work + "/killed", "--resume", f"train.steps={step + 7}", "--quiet")
    check(work + "/killed", files=2)
print("TensorBoard reads what metrics.jsonl says")
