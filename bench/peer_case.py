"""What a problem of bench/peers.py consists of."""
from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F


@dataclass
class Case:
    """A call takes its inputs by name and returns the output and the final state, or None for that."""

    op: str
    shape: dict  # sizes by name
    inputs: Callable  # () -> {name: tensor}, of the types that are timed
    definition: Callable  # (x)
    ours: Callable  # (x, mode)
    theirs: Callable  # (x)
    peer: str  # its distribution and its function
    modes: tuple = ("default",)
    whole: tuple = ()  # inputs that have neither batch nor time
    prepare: Callable = None  # x as the peer wants it, made before the clock starts
    other: tuple = ()  # inputs that it then takes in another form: their gradients are not compared


def unit(x):
    return F.normalize(x, dim=-1)


def normal(*sizes):
    return torch.randn(*sizes, device="cuda")


def in_bfloat16(x, but=()):
    return {name: t if name in but or not t.is_floating_point() else t.bfloat16() for name, t in x.items()}
