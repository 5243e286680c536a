#!/usr/bin/env python3
"""The package as a wheel lays it out works by itself: put beside a torch it finds it, the program too,
and nothing of it points to the folder it was built in. LRNN_BUILD names the build folder.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from lib.harness import run  # first: it skips where there is no torch
import torch

build = os.environ["LRNN_BUILD"]
root = pathlib.Path(__file__).resolve().parents[2]
work = tempfile.TemporaryDirectory()
site = pathlib.Path(work.name)
torch_folder = pathlib.Path(torch.__file__).parent
plain = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "PYTHONPATH")}


def call(*words, code=0, **environment):
    out = subprocess.run([str(word) for word in words], capture_output=True, text=True, cwd=work.name,
                         env={**plain, "PYTHONPATH": work.name, **environment})
    assert out.returncode == code, f"{words} ended with {out.returncode}: {out.stdout}{out.stderr}"
    return out.stdout + out.stderr


def python(text, **options):
    return call(sys.executable, "-c", text, **options)


def check_layout():
    subprocess.run(["cmake", "--install", build, "--component", "python", "--prefix", work.name], check=True, stdout=subprocess.DEVNULL)
    shutil.copytree(root / "python" / "lrnn", site / "lrnn", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (site / "torch").symlink_to(torch_folder)
    for file in [*(site / "lrnn/lib").glob("liblrnn*.so"), site / "lrnn/bin/lrnn"]:
        path = re.search(r"R(?:UN)?PATH.*\[(.*)\]", call("readelf", "-d", file))[1]
        assert all(folder.startswith("$ORIGIN") for folder in path.split(":")), f"{file} looks in {path}"


def check_nothing_else_is_needed():
    """Beside torch, glibc and GCC's run-time: a wheel is taken to machines without Debian's libraries."""
    system = r"ld-linux-.*|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so.*"
    cuda = r"libcudart\.so.*"  # torch with CUDA has it in a package beside its own
    for file in [*(site / "lrnn/lib").iterdir(), site / "lrnn/bin/lrnn"]:
        for name in re.findall(r"NEEDED.*\[(.*)\]", call("readelf", "-d", file)):
            brought = (site / "lrnn/lib" / name).exists() or (torch_folder / "lib" / name).exists()
            assert brought or re.fullmatch(system, name) or re.fullmatch(cuda, name), f"{file.name} needs {name}, which nobody brings"


def check_program():
    version = call(site / "lrnn/bin/lrnn", "--version")
    assert version.startswith("lrnn "), version
    assert call(sys.executable, "-m", "lrnn", "--version") == version
    assert call(sys.executable, root / "python/script/lrnn", "--version") == version
    where = call("ldd", site / "lrnn/bin/lrnn")
    assert "not found" not in where and f"{build}/" not in where, where
    assert '"delta_product"' in call(sys.executable, "-m", "lrnn", "show", "configs/tiny.yaml", "--json")
    assert "there is no command" in call(sys.executable, "-m", "lrnn", "trane", code=2)  # exit codes come through


def check_borrowed_torch():
    """An environment that has torch from elsewhere: it is not beside the package."""
    (site / "torch").unlink()
    above = f"{work.name}:{torch_folder.parent}"
    assert call(sys.executable, "-m", "lrnn", "--version", PYTHONPATH=above).startswith("lrnn ")
    assert "2" in python("import lrnn, torch; print(lrnn.swiglu(torch.ones(2), torch.ones(2)).numel())", PYTHONPATH=above)


def check_import():
    said = python("import lrnn, torch; print(lrnn.__file__, torch.cuda.is_initialized())")
    assert said.split() == [str(site / "lrnn/__init__.py"), "False"], said


def check_other_torch():
    said = python("import torch; torch.__version__ = '2.12.0'; import lrnn", code=1)
    assert "ImportError: lrnn is built for torch 2.11.x, and this is torch 2.12.0" in said, said
    os.rename(site / "lrnn/lib/liblrnn.so", site / "lrnn/lib/away.so")
    assert "ImportError: lrnn's library is not in" in python("import lrnn", code=1)


def check_what_pip_says():
    """Before it downloads or compiles anything."""
    try:
        import scikit_build_core  # noqa: F401
    except ImportError:
        return print("without scikit-build-core this is not checked")
    ask = f"import os, backend; os.chdir('{root}'); print(backend.get_requires_for_build_wheel())"
    path = {"PYTHONPATH": f"{root / 'python'}:{os.environ['PYTHONPATH']}"}
    named = {"LRNN_TORCH": str(torch_folder)}
    assert "torch" not in python(ask, **path, **named)
    assert "lrnn: no C++ compiler was found ('no-such-compiler')" in python(ask, code=1, **path, CXX="no-such-compiler")
    said = python(ask, code=1, **path, CXX="c++ -nostdinc -I/dev")
    assert "run: apt-get install libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libsentencepiece-dev" in said, said
    assert f"lrnn: LRNN_TORCH={work.name} is not the folder of a torch 2.11" in python(ask, code=1, **path, LRNN_TORCH=work.name)


def check_one_version_of_torch():
    """The number stands where each tool reads it; it has to be the same."""
    places = {"cmake/LibTorch.cmake": r"set\(LRNN_TORCH_VERSION ([0-9.]+)\)", "pyproject.toml": r'"torch==([0-9.]+)\.\*"',
              "python/backend.py": r'WANTED = "([0-9.]+)"', "python/lrnn/library.py": r'TORCH = "([0-9.]+)"',
              "scripts/setup.sh": r"torch_pin=([0-9]+\.[0-9]+)"}
    found = {place: re.search(pattern, (root / place).read_text())[1] for place, pattern in places.items()}
    assert len(set(found.values())) == 1, found


run(globals())
