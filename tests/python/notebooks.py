#!/usr/bin/env python3
"""The notebooks of examples/python run from the first cell to the last, each in a process of its own, and show again
what they were saved with: the same kinds of output in the same cells.

Jupyter is not needed: a cell is executed, and if it ends with an expression, that is shown, as Jupyter does.
"""

import ast
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from lib.harness import run  # first: it skips where there is no torch

NOTEBOOKS = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples" / "python").glob("*.ipynb"))


def kinds(value):
    """As Jupyter finds them."""
    if value is None:
        return set()
    return {"text/plain"} | ({"text/html"} if hasattr(value, "_repr_html_") and value._repr_html_() else set())


def execute(source, names):
    """Runs a cell; what it printed, and the kinds of what it shows at its end."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    shown, printed = None, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307
    return printed.getvalue(), kinds(shown)


def run_notebook(path):
    names = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] != "code":
            continue
        printed, shown = execute("".join(cell["source"]), names)
        saved = {kind for output in cell["outputs"] for kind in output.get("data", {})}
        told = any(output["output_type"] == "stream" for output in cell["outputs"])
        assert shown == saved, f"cell {number} shows {shown}, and was saved with {saved}"
        assert bool(printed) == told, f"cell {number} prints {printed!r}, and was saved {'with' if told else 'without'} a text"


def check_notebooks():
    assert len(NOTEBOOKS) == 2, NOTEBOOKS
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            out = subprocess.run([sys.executable, __file__, path], cwd=folder, env={**os.environ, "TMPDIR": folder}, capture_output=True, text=True)
        assert out.returncode == 0, f"{path.name}: {out.stderr}"
        print(f"{path.name}: ok")


def check_no_traces():
    """Saved notebooks have no errors, no paths of the machine that ran them, and no settings of its Jupyter."""
    for path in NOTEBOOKS:
        text = path.read_text()
        assert '"error"' not in text and "Traceback" not in text, path
        assert "/home/" not in text and "/tmp/" not in text and "/work/" not in text, f"{path} has a path"


if len(sys.argv) > 1:
    run_notebook(pathlib.Path(sys.argv[1]))
else:
    run(globals())
