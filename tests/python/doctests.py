#!/usr/bin/env python3
"""The examples in the docstrings of the package do what they say."""

import doctest
import importlib
import pkgutil

import torch
from lib.harness import run

import lrnn


def check_examples():
    modules = [lrnn, *(importlib.import_module(f"lrnn.{m.name}") for m in pkgutil.iter_modules(lrnn.__path__) if m.name != "__main__")]
    torch.manual_seed(0)
    for module in modules:
        failed, tried = doctest.testmod(module, extraglobs={"torch": torch, "lrnn": lrnn})
        assert not failed, module.__name__
        print(f"{module.__name__}: {tried} lines")


def check_every_function_has_one():
    for name in lrnn.__all__:
        thing = getattr(lrnn, name)
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in thing.__doc__, f"lrnn.{name} has no example"


run(globals())
