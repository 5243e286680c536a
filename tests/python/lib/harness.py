"""What the tests of this folder share. The package is build/python/lrnn, which PYTHONPATH names."""

import os
import sys


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(1 if os.environ.get("LRNN_REQUIRE_PYTHON") else 77)


try:
    import torch  # noqa: F401
except ImportError as error:
    skip(f"torch cannot be imported here ({error})")


def run(names):
    """Calls every function check_* of a module, in order."""
    for name, check in list(names.items()):
        if name.startswith("check_"):
            check()
            print(f"{name}: ok", flush=True)


def refused(kind, words, call, *args, **kwargs):
    """call(...) raises `kind`, and says `words`."""
    try:
        call(*args, **kwargs)
    except kind as error:
        assert words in str(error), f"it says: {error}"
    else:
        raise AssertionError(f"this was accepted: {words}")


def distance(got, want):
    """The root mean square of the difference over that of what is wanted."""
    assert got.shape == want.shape, f"{tuple(got.shape)} is not {tuple(want.shape)}"
    got, want = got.double(), want.double()
    return ((got - want).square().mean().sqrt() / (want.square().mean().sqrt() + 1e-30)).item()


def close(got, want, limit, what=""):
    far = distance(got, want)
    assert far <= limit, f"{what}: off by {far:.2g}"  # NaN fails, too
