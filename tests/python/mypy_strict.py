#!/usr/bin/env python3
"""The package has types: mypy, as strict as it can be (pyproject.toml), finds nothing in it."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

from lib.harness import run, skip

if not importlib.util.find_spec("mypy"):
    skip("mypy is not installed")
cache = tempfile.TemporaryDirectory()  # torch is read once
root = pathlib.Path(__file__).resolve().parents[2]


def mypy(folder, *words):
    # Not the package of PYTHONPATH, which is links to the same files.
    path = os.pathsep.join(p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if not p.endswith("build/python"))
    return subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", cache.name, *words], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path})


def check_types():
    out = mypy(root)
    assert out.returncode == 0, out.stdout + out.stderr


def check_users_see_them():
    """Whoever uses the package has its types checked, too."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "wrong.py").write_text("import lrnn\nlrnn.rms_norm(1, 2, 3.0)\n")
        pathlib.Path(folder, "lrnn").symlink_to(root / "python/lrnn")
        out = mypy(folder, "wrong.py")
        assert 'Argument 1 to "rms_norm" has incompatible type "int"' in out.stdout, out.stdout + out.stderr


run(globals())
