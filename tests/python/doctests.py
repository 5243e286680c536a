#!/usr/bin/env python3
"""The examples in the docstrings of the package do what they say."""

import doctest
import importlib
import pkgutil

import torch
from lib.harness import run

import lrnn


def check_examples():
    names = [m.name for m in pkgutil.walk_packages(lrnn.__path__, "lrnn.") if not m.name.endswith("__main__")]
    modules = [lrnn, *map(importlib.import_module, names)]
    torch.manual_seed(0)
    for module in modules:
        failed, tried = doctest.testmod(module, extraglobs={"torch": torch, "lrnn": lrnn})
        assert not failed, module.__name__
        print(f"{module.__name__}: {tried} lines")


def check_every_function_has_one():
    for module in (lrnn, lrnn.fla):
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and not isinstance(thing, type) and name not in ("enable", "disable"):
                assert ">>>" in thing.__doc__, f"{module.__name__}.{name} has no example"


run(globals())
