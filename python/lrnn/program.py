"""The command line: `python -m lrnn COMMAND ...` and the script `lrnn` are the same C++ program."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import runpy
import sys

PROGRAM = pathlib.Path(__file__).parent / "bin" / "lrnn"


def command(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """What runs the program with these arguments, and in which environment."""
    environment = dict(os.environ)
    # The program looks for LibTorch beside the package. In an environment that borrows torch from
    # another one it lies elsewhere.
    torch = importlib.util.find_spec("torch")
    if torch and torch.submodule_search_locations and not (PROGRAM.parents[2] / "torch").exists():
        folders = [f"{torch.submodule_search_locations[0]}/lib", environment.get("LD_LIBRARY_PATH")]
        environment["LD_LIBRARY_PATH"] = ":".join(folder for folder in folders if folder)
    return [str(PROGRAM), *arguments], environment


def one_of_several(arguments: list[str]) -> bool:
    """Whether torchrun, or a launcher like it, has started this process to train together with others."""
    return arguments[:1] == ["train"] and {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()


def main() -> str | int:
    """Becomes the program; comes back with the reason where there is none, or with the exit code where
    Python had to help it: as one of several processes, and with data that C++ does not read."""
    if not PROGRAM.exists():
        return f"lrnn: the program is not in {PROGRAM.parent}\n      install the package again: pip install --force-reinstall lrnn"
    if one_of_several(sys.argv[1:]):
        from lrnn import together  # the package, and with it torch

        return together.run(sys.argv[1:])
    if sys.argv[1:2] == ["prepare"]:
        code: int | None = runpy.run_path(str(pathlib.Path(__file__).with_name("prepare.py")))["main"](sys.argv[1:], command)
        if code is not None:
            return code
    words, environment = command(sys.argv[1:])
    os.execve(PROGRAM, words, environment)
