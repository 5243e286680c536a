#!/usr/bin/env python3
"""fla's own tests of the ops that lrnn.fla covers, run after lrnn.fla.enable(): how many pass, and why others do not.

    git clone https://github.com/fla-org/flash-linear-attention /tmp/fla
    PYTHONPATH=build/python scripts/fla_tests.py /tmp/fla/tests [--json FILE] [-- PYTEST'S OPTIONS]

Runs on the GPU where there is one, on the CPU elsewhere. It needs PyPI flash-linear-attention, transformers and
pytest. A test counts as ours if it called lrnn at least once; the others test kernels of fla's alone (and cannot run
on a CPU). Exit code 1 if one of ours failed. Nothing of fla's tests is in this repository.
"""

import argparse
import collections
import functools
import json
import os
import pathlib
import re
import sys
import warnings

import pytest
import torch

import lrnn
from lrnn.fla import Unsupported, backend, functions

FILES = [
    "ops/test_delta.py", "ops/test_delta_product.py", "ops/test_gdn.py", "ops/test_gdn_kernels.py", "ops/test_gdp.py", "ops/test_gla.py",
    "ops/test_rwkv7.py", "modules/test_conv.py", "layers/test_gated_deltanet.py", "models/test_modeling_deltanet.py",
    "models/test_modeling_gated_deltanet.py", "models/test_modeling_gated_deltaproduct.py", "models/test_modeling_gla.py",
    "models/test_modeling_rwkv7.py",
]


class Count:
    """A plugin of pytest: counts calls of lrnn and what became of each test."""

    def __init__(self):
        self.calls, self.tests = collections.Counter(), {}

    def counted(self, name, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            self.calls[name] += 1
            try:
                return function(*args, **kwargs)
            except Unsupported:
                if torch.cuda.is_available():  # fla does it then
                    self.calls[name] -= 1
                raise

        return call

    def enable(self):
        names = [name for of_module in backend.KERNELS.values() for name in of_module] + ["chunk_gated_delta_rule"]
        for name in names:
            setattr(functions, name, self.counted(name, getattr(functions, name)))
        lrnn.fla.enable()
        if not torch.cuda.is_available():
            import fla.utils

            fla.utils.device, fla.utils.device_torch_lib = "cpu", torch.cpu  # what the tests import from there

    @pytest.hookimpl
    def pytest_runtest_setup(self, item):
        self.calls.clear()

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report):
        test = self.tests.setdefault(report.nodeid, {"outcome": "passed", "why": "", "calls": {}})
        if report.when == "call":
            test["calls"] = dict(+self.calls)
        if report.outcome != "passed":
            test["outcome"] = report.outcome
            test["why"] = reason(report)


def reason(report):
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr)).strip().splitlines()[0][:160]


def table(tests):
    """By file: how many of ours passed, failed and were skipped, and how many never called lrnn."""
    rows = collections.defaultdict(collections.Counter)
    for name, test in tests.items():
        kind = test["outcome"] if test["calls"] or test["outcome"] == "skipped" else "not ours"
        rows[name.split("::")[0]][kind] += 1
    print("| fla's tests | passed | failed | skipped by fla | of fla's own kernels |\n| --- | ---: | ---: | ---: | ---: |")
    kinds = ("passed", "failed", "skipped", "not ours")
    for file, counts in sorted(rows.items()):
        print(f"| `{file}` | " + " | ".join(str(counts[kind]) for kind in kinds) + " |")
    print("| all | " + " | ".join(str(sum(counts[kind] for counts in rows.values())) for kind in kinds) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", type=pathlib.Path, help="the folder tests/ of fla's repository")
    parser.add_argument("--json", metavar="FILE", help="what became of every test")
    words, more = sys.argv[1:], []
    if "--" in words:
        words, more = words[: words.index("--")], words[words.index("--") + 1 :]
    a = parser.parse_args(words)
    written = pathlib.Path(a.json).resolve() if a.json else None
    os.chdir(a.tests)
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    count = Count()
    count.enable()
    files = [] if any(".py" in word for word in more) else [file for file in FILES if os.path.exists(file)]
    pytest.main(["-q", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore", *files, *more], plugins=[count])
    table(count.tests)
    why = collections.Counter()
    for name, test in count.tests.items():
        if test["outcome"] == "failed" and test["calls"]:
            why[re.sub(r"\[.*", "", name), test["why"]] += 1
    for (name, text), times in why.most_common():
        print(f"failed: {name} ({times}): {text}")
    if written:
        written.write_text(json.dumps({"device": "cuda" if torch.cuda.is_available() else "cpu", "tests": count.tests}, indent=1))
    sys.exit(1 if why else 0)


if __name__ == "__main__":
    main()
