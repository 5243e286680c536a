#!/usr/bin/env python3
"""The examples in the docstrings of the package do what they say, and those of the pages run."""

import doctest
import importlib
import importlib.util
import inspect
import pathlib
import pkgutil
import re
import warnings

from lib.harness import run  # first: it skips where there is no torch
import torch

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


def check_everything_is_described():
    """By its own words, and every argument of a function or layer of ours where `Args` names them."""
    for module in (lrnn, lrnn.fla, lrnn.nn):
        for name in module.__all__:
            thing = getattr(module, name)
            assert thing.__doc__ and (thing.__doc__ != getattr(thing.__base__, "__doc__", None) if isinstance(thing, type) else True), name
            if "Args:" not in thing.__doc__:
                continue
            said = re.findall(r"[\w]+", thing.__doc__.split("Args:")[1].split(">>>")[0])
            for argument in inspect.signature(thing).parameters.values():
                if argument.kind is not argument.VAR_KEYWORD and "fla" not in thing.__doc__.split("Args:")[0]:
                    assert argument.name in said, f"{module.__name__}.{name}: nothing is said about {argument.name}"


def check_pages():
    root = pathlib.Path(__file__).resolve().parents[2]
    without = [name for name in ("fla", "transformers") if not importlib.util.find_spec(name)]
    for page in ("README.md", "docs/python.md", "docs/tutorial.md"):
        names = {}
        for block in re.findall(r"^```python\n(.*?)^```", (root / page).read_text(), re.M | re.S):
            if "import fla" in block and without:
                print(f"{page}: without {without[0]}, which cannot be imported here")
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(block, page, "exec"), names)
        assert names, f"{page} has no example"


run(globals())
