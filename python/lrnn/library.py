"""Loads liblrnn.so, which registers the ops with torch: after that there is torch.ops.lrnn.

The kernels for GPUs are a library of their own beside it. It is loaded when the first tensor on a GPU
comes, so that nothing here asks for a GPU.
"""

import pathlib

import torch

TORCH = "2.11"  # what liblrnn.so is linked to: the ABI of torch's C++ changes between versions
LIBRARY = pathlib.Path(__file__).parent / "lib" / "liblrnn.so"

if not torch.__version__.startswith(TORCH + "."):
    raise ImportError(f"lrnn is built for torch {TORCH}.x, and this is torch {torch.__version__}: pip install 'torch=={TORCH}.*'")
if not LIBRARY.exists():
    raise ImportError(f"lrnn's library is not in {LIBRARY.parent}: pip install the package, or run `make build` and use build/python")
torch.ops.load_library(str(LIBRARY))
