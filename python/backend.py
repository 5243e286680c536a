"""What pip calls to build the package: scikit-build-core, told which torch to build against.

That is the folder LRNN_TORCH names, or the torch 2.11 of the environment pip works for. Only where
there is neither one is downloaded for the build.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403  (the hooks that stay as they are)

WANTED = "2.11"
FIND = "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"


def fits(folder):
    try:
        text = pathlib.Path(folder, "version.py").read_text()
    except OSError:
        return False
    found = re.search(r"__version__ = '([0-9]+\.[0-9]+)", text)
    return found is not None and found[1] == WANTED


def torch_folder():
    """The torch to build against, or None."""
    if os.environ.get("LRNN_TORCH"):
        return os.environ["LRNN_TORCH"]
    spec = importlib.util.find_spec("torch")
    if spec and fits(spec.submodule_search_locations[0]):
        return spec.submodule_search_locations[0]
    # pip hides the environment behind PYTHONPATH while it builds.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    seen = subprocess.run([sys.executable, "-c", FIND], env=plain, capture_output=True, text=True)
    folder = seen.stdout.strip()
    return folder if fits(folder) else None


def get_requires_for_build_wheel(config_settings=None):
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
