#!/usr/bin/env python3
"""fla's own tests of the ops that lrnn.fla covers, run after lrnn.fla.enable(): how many pass, and why others do not.

    git clone https://github.com/fla-org/flash-linear-attention /tmp/fla
    PYTHONPATH=build/python scripts/fla_tests.py /tmp/fla/tests [--json FILE] [-- PYTEST'S OPTIONS]

Runs on the GPU where there is one, on the CPU elsewhere. It needs PyPI flash-linear-attention, transformers and
pytest. A test counts as ours if it called lrnn at least once; the others test kernels of fla's alone, which a CPU
cannot run. On a CPU every test has a process of its own (fla's plain loops keep a state per token, up to 20 GB of
them), and where a test compares with a Triton kernel of fla's for which fla has a plain version, it compares with that.
Exit code 1 if one of ours failed. Nothing of fla's tests is in this repository.
"""

import argparse
import collections
import functools
import json
import os
import pathlib
import re
import resource
import select
import signal
import sys
import time
import warnings

import pytest
import torch
from _pytest.runner import runtestprotocol

import lrnn
from lrnn.fla import Unsupported, backend, functions, kda

FILES = [
    "ops/test_delta.py", "ops/test_delta_product.py", "ops/test_gdn.py", "ops/test_gdn_kernels.py", "ops/test_gdp.py", "ops/test_gla.py",
    "ops/test_kda.py", "ops/test_rwkv7.py", "modules/test_conv.py", "layers/test_gated_deltanet.py", "models/test_modeling_deltanet.py",
    "models/test_modeling_gated_deltanet.py", "models/test_modeling_gated_deltaproduct.py", "models/test_modeling_gla.py",
    "models/test_modeling_kda.py", "models/test_modeling_rwkv7.py",
]
KINDS = {
    "passed": "passed", "failed": "failed", "refused": "refused by name", "large": "too large or long here", "skipped": "skipped by fla",
    "theirs": "of fla's own kernels",
}
NO_TRITON = ("0 active drivers", "Cannot find a working triton", "Pointer argument")  # what Triton says without a GPU


def kind_of(test):
    """One of KINDS."""
    if test["outcome"] in ("passed", "skipped"):
        return test["outcome"] if test["calls"] or test["outcome"] == "skipped" else "theirs"
    if test["outcome"] == "stopped" or "can't allocate memory" in test["why"] or test["why"].startswith("MemoryError"):
        return "large"
    if not test["calls"] or any(text in test["why"] for text in NO_TRITON):
        return "theirs"
    return "refused" if "Unsupported" in test["why"] else "failed"


class Count:
    """A plugin of pytest: counts calls of lrnn and what became of each test."""

    def __init__(self, a, known, written):
        self.calls, self.tests, self.written = collections.Counter(), known, written
        self.apart, self.part = not torch.cuda.is_available(), a.part
        self.gigabytes, self.seconds = a.gigabytes, a.seconds

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
        of_module = {**backend.KERNELS, "fla.ops.gated_delta_rule": ("chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule")}
        for module, names in of_module.items():
            ours = kda if module == "fla.ops.kda" else functions
            for name in names:
                setattr(ours, name, self.counted(name, getattr(ours, name)))
        lrnn.fla.enable()
        if not torch.cuda.is_available():
            import fla.utils

            fla.utils.device, fla.utils.device_torch_lib = "cpu", torch.cpu  # what the tests import from there
            plain_references()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = items[self.part[0] :: self.part[1]]

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

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if not self.apart:
            return None
        begin, (end, other) = time.monotonic(), os.pipe()
        child = os.fork()
        if child == 0:
            os.close(end)
            resource.setrlimit(resource.RLIMIT_DATA, (self.gigabytes << 30,) * 2)
            for report in runtestprotocol(item, nextitem=nextitem, log=False):
                self.pytest_runtest_logreport(report)
            with os.fdopen(other, "w") as file:
                json.dump(self.tests[item.nodeid], file)
            os._exit(0)
        os.close(other)
        test = self.tests[item.nodeid] = self.told(child, end)
        test["s"] = round(time.monotonic() - begin, 1)
        print(f"{kind_of(test)} {test['s']} s {item.nodeid} {test['why']}", flush=True)
        self.write()  # after each: what is done is not lost
        return True

    def write(self):
        if self.written:
            self.written.write_text(json.dumps({"device": "cuda" if torch.cuda.is_available() else "cpu", "tests": self.tests}, indent=1))

    def told(self, child, end):
        """What the child says of its test, or why it says nothing."""
        text, why = b"", f"after {self.seconds} s"
        until = time.monotonic() + self.seconds
        while select.select([end], [], [], max(0, until - time.monotonic()))[0]:
            more = os.read(end, 1 << 16)
            text += more
            if not more:
                why = f"beyond {self.gigabytes} GB, probably"
                break
        os.close(end)
        if not text:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return json.loads(text) if text else {"outcome": "stopped", "why": why, "calls": {}}


def plain_references():
    """fla's plain version of the recurrence beneath RWKV-7 in place of its Triton kernels, which the tests compare with."""
    import fla.ops.generalized_delta_rule.dplr as dplr
    from fla.ops.generalized_delta_rule.dplr import fused_recurrent
    from fla.ops.generalized_delta_rule.dplr.naive import dplr_recurrence

    def plain(q, k, v, a, b, gk, scale=None, initial_state=None, output_final_state=False, chunk_size=None):
        heads_first = [x.transpose(1, 2) for x in (q, k, v, a, b, gk)]
        o, state = dplr_recurrence(*heads_first, initial_state, output_final_state)
        return o.transpose(1, 2) * (1 if scale is None else scale * q.shape[-1] ** 0.5), state

    dplr.chunk_dplr_delta_rule = fused_recurrent.fused_recurrent_dplr_delta_rule = plain


def reason(report):
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr)).strip().splitlines()[0][:160]


def table(tests):
    """By file, how many of each kind."""
    rows = collections.defaultdict(collections.Counter)
    for name, test in tests.items():
        rows[name.split("::")[0]][kind_of(test)] += 1
    print("| fla's tests | " + " | ".join(KINDS.values()) + " |\n| --- |" + " ---: |" * len(KINDS))
    for file, counts in sorted(rows.items()):
        print(f"| `{file}` | " + " | ".join(str(counts[kind]) for kind in KINDS) + " |")
    print("| all | " + " | ".join(str(sum(counts[kind] for counts in rows.values())) for kind in KINDS) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", type=pathlib.Path, help="the folder tests/ of fla's repository")
    parser.add_argument("--json", metavar="FILE", help="what became of every test; those already in it are not run again")
    parser.add_argument("--gigabytes", type=int, default=8, help="of memory for a test on a CPU")
    parser.add_argument("--seconds", type=int, default=900, help="of time for it")
    parser.add_argument("--part", type=int, nargs=2, metavar=("I", "N"), default=[0, 1], help="every N-th test from the I-th on, for several processes")
    words, more = sys.argv[1:], []
    if "--" in words:
        words, more = words[: words.index("--")], words[words.index("--") + 1 :]
    a = parser.parse_args(words)
    written = pathlib.Path(a.json).resolve() if a.json else None
    known = json.loads(written.read_text())["tests"] if written and written.exists() else {}
    os.chdir(a.tests)
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    left_out = [word for name in known for word in ("--deselect", name)]
    count = Count(a, known, written)
    count.enable()
    files = [] if any(".py" in word for word in more) else [file for file in FILES if os.path.exists(file)]
    pytest.main(["-q", "--tb=no", "-p", "no:cacheprovider", "-o", "log_cli=false", "-W", "ignore", *left_out, *files, *more], plugins=[count])
    count.write()
    tests = count.tests
    table(tests)
    why = collections.Counter()
    for name, test in tests.items():
        if kind_of(test) in ("failed", "refused", "large"):
            why[kind_of(test), re.sub(r"\[.*", "", name), test["why"]] += 1
    for (kind, name, text), times in why.most_common():
        print(f"{KINDS[kind]}: {name} ({times}): {text}")
    sys.exit(1 if any(kind_of(test) == "failed" for test in tests.values()) else 0)


if __name__ == "__main__":
    main()
