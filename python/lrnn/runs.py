"""What the program does, called from Python: training, evaluation, compiling, proofs.

Each function runs the program beside the interpreter and returns the object that its `--json` prints,
so notebooks stay responsive, and a crash takes nothing along. Ctrl-C stops it as it does on the
command line: training saves first.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from typing import Any, TypeAlias

from .error import Error
from .program import command

Path: TypeAlias = "str | os.PathLike[str]"
Result = dict[str, Any]


def _text(value: Any) -> str:
    """As YAML reads it: JSON is YAML."""
    return value if isinstance(value, str) else json.dumps(value)


def _options(options: dict[str, Any]) -> Iterable[str]:
    """`samples=3` is --samples 3, `states=True` is --states; None and False are left out."""
    for name, value in options.items():
        if value is None or value is False:
            continue
        yield "--" + name.replace("_", "-")
        if isinstance(value, (list, tuple)):
            yield ",".join(map(str, value))
        elif value is not True:
            yield os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _show(line: str) -> None:
    """One line of progress, over the last one."""
    said = json.loads(line)
    if said.get("kind") == "progress" and "step" in said:
        text = f"step {said['step']}/{said['steps']}"
        if said.get("loss") is not None:
            text += f"  loss {said['loss']:.4f}"
        print(f"\r{text}", end="", file=sys.stderr, flush=True)
    elif said.get("kind") == "warning":
        print(f"\r{said['text']}", file=sys.stderr, flush=True)


def _call(arguments: list[str], answers: tuple[int, ...] = (0,), progress: bool = False) -> Result:
    """The program's answer. Exit code 2 is an Error with its sentence and hint."""
    pipe = None
    if progress:
        pipe, end = os.pipe()
        arguments = [*arguments, "--progress", f"/dev/fd/{end}"]
    words, environment = command([*arguments, "--json"])
    program = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        pass_fds=[end] if progress else (),
        start_new_session=True,  # Ctrl-C is ours to pass on, once
    )
    out, said = "", ""
    try:
        if pipe is not None:
            os.close(end)
            with os.fdopen(pipe) as told:
                shown = False
                for line in told:
                    _show(line)
                    shown = True
                if shown:
                    print(file=sys.stderr)
        out, said = program.communicate()
    except KeyboardInterrupt:
        program.send_signal(signal.SIGINT)
        program.communicate()
        raise
    if program.returncode in answers:
        answer: Result = json.loads(out)
        return answer
    if program.returncode == 2:
        lines = [line for line in said.splitlines() if line.strip()]
        first = next((i for i, line in enumerate(lines) if line.startswith("lrnn: ")), None)
        if first is not None:
            raise Error(lines[first].removeprefix("lrnn: "), " ".join(line.strip() for line in lines[first + 1 :]))
    raise RuntimeError(f"lrnn {' '.join(arguments)} ended with code {program.returncode}:\n{said}")


def train(
    config: Path | dict[str, Any], out: Path | None = None, device: str = "cpu", *, progress: bool = True, **keys: Any
) -> Result:
    """Trains what a config describes and returns its result: the run folder, the step, the evaluation.

    Args:
        config: a file of configs/ or your own, a dict, or YAML text.
        out: the run folder; without it the program's own choice, or a new folder beside the
            temporary files where `config` is no file.
        device: "cpu" or "cuda".
        progress: one line with step and loss, on standard error.
        keys: what replaces the file's values, ``**{"train.steps": 5}``. Also the program's options:
            ``resume=True``, ``overwrite=True``.

    >>> import lrnn
    >>> task = {"name": "parity", "train": {"length": [3, 9]}, "eval": {"length": [9, 12], "samples": 16}}
    >>> model = {"width": 16, "layers": 1, "mixer": {"name": "delta_net", "heads": 2, "key_dim": 8}}
    >>> result = lrnn.train({"task": task, "model": model, "train": {"steps": 2, "batch": 4}}, progress=False)
    >>> result["step"], result["evaluation"]["count"]
    (2, 16)
    """
    settings = [f"{name}={_text(value)}" for name, value in keys.items() if "." in name or name == "seed"]
    options = {name: value for name, value in keys.items() if "." not in name and name != "seed"}
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(config, dict) or (isinstance(config, str) and "\n" in config):
            name = os.path.join(folder, "config.yaml")
            with open(name, "w") as file:
                file.write(config if isinstance(config, str) else json.dumps(config))
            config, out = name, out or tempfile.mkdtemp(prefix="lrnn-run-")
            options.setdefault("overwrite", True)
        arguments = ["train", os.fspath(config), *settings, "--device", device]
        return _call([*arguments, *_options({"out": out, **options})], progress=progress)


def evaluate(run: Path, **options: Any) -> Result:
    """Accuracy of a run by length. Options as `lrnn eval` has them.

    >>> import lrnn
    >>> run = lrnn.compile(example="parity")["run"]
    >>> lrnn.evaluate(run, lengths="40:256", samples=64)["evaluation"]["accuracy"]
    1.0
    """
    return _call(["eval", os.fspath(run), *_options(options)])


def spectrum(run: Path, **options: Any) -> Result:
    """The eigenvalues that a model uses. Options as `lrnn spectrum` has them.

    >>> import lrnn
    >>> head = lrnn.spectrum(lrnn.compile(example="parity")["run"], samples=4)["heads"][0]
    >>> round(head["real"]["min"], 6)   # a 1 reflects the state
    -1.0
    """
    return _call(["spectrum", os.fspath(run), *_options(options)])


def compile(  # noqa: A001  (the program's name for it)
    regex: str | None = None,
    alphabet: str | None = None,
    automaton: Path | None = None,
    group: str | None = None,
    example: str | None = None,
    out: Path | None = None,
    **options: Any,
) -> Result:
    """An automaton as the weights of a model that follows it exactly; the result's "run" is its folder.

    >>> import lrnn
    >>> made = lrnn.compile(regex="(ab|ba)*", alphabet="ab")
    >>> lrnn.verify(made["run"], tokens=1000)["right"]
    True
    """
    out = out or tempfile.mkdtemp(prefix="lrnn-compiled-")
    named = {"regex": regex, "alphabet": alphabet, "automaton": automaton, "group": group, "example": example}
    return {"run": os.fspath(out), **_call(["compile", *_options({**named, "out": out, **options})])}


def verify(run: Path, **options: Any) -> Result:
    """Proves a compiled model right, or finds the first word that a model gets wrong.

    >>> import lrnn
    >>> lrnn.verify(lrnn.compile(group="S3")["run"], tokens=1000)["certificate"]["all_lengths"]
    True
    """
    return _call(["verify", os.fspath(run), *_options(options)], answers=(0, 1))


def check(
    regex: str | None = None,
    alphabet: str | None = None,
    automaton: Path | None = None,
    group: str | None = None,
    example: str | None = None,
    **options: Any,
) -> Result:
    """Which linear RNNs can follow an automaton, and by which theorem.

    >>> import lrnn
    >>> lrnn.check(group="A5")["class"]["solvable"]
    False
    """
    named = {"regex": regex, "alphabet": alphabet, "automaton": automaton, "group": group, "example": example}
    return _call(["check", *_options({**named, **options})], answers=(0, 1))


def explain(run: Path, out: Path | None = None, **options: Any) -> Result:
    """A compiled model as a page to click through; the result's "page" is the file, RUN/explain.html without `out`.

    >>> import lrnn
    >>> page = lrnn.explain(lrnn.compile(example="parity")["run"])["page"]
    >>> open(page).read(15)
    '<!DOCTYPE html>'
    """
    return _call(["explain", os.fspath(run), *_options({"out": out, **options})])


def extract(run: Path, out: Path | None = None, **options: Any) -> Result:
    """The automaton that a model follows, learnt by asking the model; the result's "automaton" is its file, which
    `compile(automaton=...)` takes. "agreed" is False when a difference was left or a budget ended.

    >>> import lrnn
    >>> found = lrnn.extract(lrnn.compile(example="mod3")["run"], longest=50)
    >>> found["states"], found["agreed"], found["first_difference"]
    (3, True, None)
    """
    out = out or os.path.join(tempfile.mkdtemp(prefix="lrnn-extracted-"), "automaton.json")
    return _call(["extract", os.fspath(run), *_options({"out": out, **options})], answers=(0, 1))
