#!/usr/bin/env python3
"""`torchrun -m lrnn train --device cuda`: processes that share a GPU (Gloo) train what one process trains in as many
parts, to the bit, one process with NCCL what the program trains without it, and a killed process costs nothing
but time. Where there are two GPUs, two processes with NCCL as well."""

import sys
import tempfile

from lib.harness import run
from lib.together import CONFIGS, ENVIRONMENT, KEYS, alone, done, kill_one, same, together

import torch

GPU = ["--device", "cuda"]
# The first updates of a language model, in bfloat16.
TEXT = {
    "config": CONFIGS / "lm" / "plays.yaml",
    "keys": ["train.precision=bfloat16", "train.log_every=1", "train.eval_every=4", "train.checkpoint_every=4", "task.eval.samples=16"],
}
# One slice has all parameters, and the averages are of all slices.
SMALL = {"keys": ["train.batch=24", "train.log_every=1", "train.eval_every=3", "train.checkpoint_every=3", "train.ema=0.9"]}
ONE_GPU = {**ENVIRONMENT, "CUDA_VISIBLE_DEVICES": "0"}


def parts_and_ranks(ranks, steps, environment=ONE_GPU, words=(), **named):
    with tempfile.TemporaryDirectory() as folder:
        words = [f"train.steps={steps}", *words, *GPU]
        alone(f"{folder}/parts", f"train.accumulate={ranks}", *words, **named)
        said = done(together(ranks, f"{folder}/ranks", *words, **named), environment)
        same(f"{folder}/parts", f"{folder}/ranks", step=steps)
        return said.stderr


def check_one_rank_with_nccl():
    assert "share a GPU" not in parts_and_ranks(1, 6)


def check_ranks_of_a_task_are_parts():
    assert "processes share a GPU" in parts_and_ranks(2, 6)


def check_a_slice_without_parameters():
    parts_and_ranks(3, 6, **SMALL)


def check_ranks_of_a_text_are_parts():
    parts_and_ranks(2, 8, **TEXT)


def check_ranks_on_gpus_of_their_own():
    if torch.cuda.device_count() < 2:
        return print("skipped: there is one GPU")
    for named in ({"keys": KEYS}, TEXT):
        assert "share a GPU" not in parts_and_ranks(2, 8, ENVIRONMENT, **named)


def check_a_killed_rank():
    with tempfile.TemporaryDirectory() as folder:
        words = ["train.steps=200", *GPU]
        alone(f"{folder}/calm", "train.accumulate=2", *words)
        kill_one(together(2, f"{folder}/disturbed", *words, "--resume", options=["--max-restarts", "1"]), f"{folder}/disturbed")
        same(f"{folder}/calm", f"{folder}/disturbed", step=200)


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("skipped: there is no GPU")
        sys.exit(77)
    run(globals())
