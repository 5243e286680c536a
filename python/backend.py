"""What pip calls to build the package: scikit-build-core, told which torch to build against.

That is the folder LRNN_TORCH names, or the torch 2.11 of the environment pip works for. Only where
there is neither one is downloaded for the build. What must come from elsewhere (a compiler, Debian's
packages) is looked for first: nobody downloads torch to read that yaml-cpp is missing.
"""

import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403  (the hooks that stay as they are)

WANTED = "2.11"
# What the sources include, and the Debian package that has it.
HEADERS = {
    "yaml-cpp/yaml.h": "libyaml-cpp-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
    "CLI/CLI.hpp": "libcli11-dev",
    "sentencepiece_trainer.h": "libsentencepiece-dev",
}
FIND = "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"


def stop(sentence, hint):
    raise SystemExit(f"lrnn: {sentence}\n      {hint}")


def check_packages():
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    if not shutil.which(compiler[0]):
        stop(f"no C++ compiler was found ('{compiler[0]}')", "install one, for example: apt-get install g++")
    if os.environ.get("CMAKE_ARGS") or os.environ.get("CMAKE_PREFIX_PATH"):
        return  # libraries in places of their own, which CMake will look into
    ask = "\n".join(f"#if !__has_include(<{header}>)\nMISSING {package}\n#endif" for header, package in HEADERS.items())
    said = subprocess.run([*compiler, "-std=c++20", "-E", "-P", "-x", "c++", "-"], input=ask, capture_output=True, text=True)
    if said.returncode:
        stop(f"the compiler '{compiler[0]}' does not know C++20", "use g++ 11 or newer, or set CXX")
    missing = re.findall("MISSING (.*)", said.stdout)
    if missing:
        stop("these Debian packages are missing: " + " ".join(missing), "run: apt-get install " + " ".join(missing))


def fits(folder):
    try:
        text = pathlib.Path(folder, "version.py").read_text()
    except OSError:
        return False
    found = re.search(r"__version__ = '([0-9]+\.[0-9]+)", text)
    return found is not None and found[1] == WANTED


def torch_folder():
    """The torch to build against, or None."""
    named = os.environ.get("LRNN_TORCH")
    if named:
        if not fits(named):
            stop(f"LRNN_TORCH={named} is not the folder of a torch {WANTED}", f"name one, or unset it: pip then finds torch {WANTED} itself")
        return named
    spec = importlib.util.find_spec("torch")
    if spec and fits(spec.submodule_search_locations[0]):
        return spec.submodule_search_locations[0]
    # pip hides the environment behind PYTHONPATH while it builds.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    seen = subprocess.run([sys.executable, "-c", FIND], env=plain, capture_output=True, text=True)
    folder = seen.stdout.strip()
    return folder if fits(folder) else None


def get_requires_for_build_wheel(config_settings=None):
    check_packages()
    needed = build.get_requires_for_build_wheel(config_settings)
    return needed if torch_folder() else [*needed, f"torch=={WANTED}.*"]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = dict(config_settings or {})
    folder = torch_folder()
    if folder:
        settings.setdefault("cmake.define.LRNN_TORCH", folder)
    return build.build_wheel(wheel_directory, settings, metadata_directory)


# An editable install would leave the library in a folder that the next build empties; for work on
# lrnn itself there is build/python, which `make build` keeps up to date.
def get_requires_for_build_editable(config_settings=None):
    raise SystemExit("lrnn: there is no editable install; run `make build` and put build/python on PYTHONPATH")
