#!/usr/bin/env python3
"""Under torch.use_deterministic_algorithms(True) every function and layer runs, forward and backward, and gives the
same bits twice; on a GPU the second time beside a stream that keeps it busy. torch then fills new memory with NaN, so
nothing is read before it is written either.
"""

import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # torch asks for it; before anything of CUDA's begins

from lib.harness import run  # noqa: E402  (before torch: it skips where there is none)
import torch  # noqa: E402
from lib.problems import cast, everything, moved, problems  # noqa: E402

import lrnn  # noqa: E402

torch.use_deterministic_algorithms(True)
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
# B, T, N, H, K, V, D, W: several chunks with a rest, and for a GPU heads that its kernels for training take.
SIZES = {"cpu": [(2, 131, 2, 3, 8, 12, 24, 4)], "cuda": [(2, 131, 2, 3, 8, 12, 24, 4), (2, 331, 2, 4, 64, 64, 256, 4), (2, 1050, 1, 2, 128, 128, 128, 4)]}


def loss_problem(sizes):
    B, T, _, _, _, _, D, _ = sizes
    target = torch.randint(301, (B * T,))
    target[::7] = -1
    yield "linear_cross_entropy", lrnn.linear_cross_entropy, dict(h=torch.randn(B * T, D), weight=torch.randn(301, D)), {"target": target}


def every_problem(sizes, device):
    for packed in (False, True):
        yield from problems(packed=packed, sizes=sizes)
    yield from loss_problem(sizes)


def busy(device):
    """Work for the GPU on another stream, for some milliseconds."""
    if device == "cuda":
        with torch.cuda.stream(torch.cuda.Stream()):
            x = torch.randn(2048, 2048, device=device)
            for _ in range(30):
                x = x @ x / 50


def same_twice(name, call, device):
    first = call()
    for _ in range(2):
        busy(device)
        for key, x in call().items():
            assert not x.is_floating_point() or x.isfinite().all(), f"{name} on {device}: {key} is not finite"
            assert torch.equal(x, first[key]), f"{name} on {device}: {key} has other bits the second time"


def check_functions():
    for device in DEVICES:
        for sizes in SIZES[device]:
            for dtype in (torch.float32, torch.bfloat16):
                for name, function, tensors, options in every_problem(sizes, device):
                    tensors, options = moved(cast(name, tensors, dtype), options, device)
                    same_twice(f"{name} {dtype}", lambda: everything(function, tensors, options), device)


def check_accuracies():
    for device in DEVICES:
        for accuracy in ("fast", "accurate", "exact"):
            name, function, tensors, _ = next(problems(sizes=SIZES[device][-1]))
            tensors, options = moved(cast(name, tensors, torch.bfloat16), {"accuracy": accuracy}, device)
            same_twice(f"{name} {accuracy}", lambda: everything(function, tensors, options), device)


def check_layers():
    layers = {
        "DeltaNet": dict(hidden_size=48, num_heads=2), "GatedDeltaNet": dict(hidden_size=48, head_dim=16, num_heads=2),
        "GatedDeltaProduct": dict(hidden_size=48, head_dim=16, num_heads=2, num_householder=2), "DeltaProduct": dict(width=48, heads=2, key_dim=16),
        "GatedLinearAttention": dict(hidden_size=48, num_heads=2), "Mamba": dict(hidden_size=48), "RWKV7": dict(hidden_size=48, head_dim=16),
        "MLSTM": dict(width=48, heads=2), "SLSTM": dict(width=48, heads=2), "Titans": dict(width=48, heads=2, key_dim=16, value_dim=16), "TTT": dict(width=48, heads=2, head_dim=16),
        "KimiDeltaAttention": dict(hidden_size=48, head_dim=16, num_heads=2)}
    assert set(layers) == set(lrnn.nn.__all__)
    for device in DEVICES:
        for name, arguments in layers.items():
            torch.manual_seed(0)
            layer, x = getattr(lrnn.nn, name)(**arguments).to(device), torch.randn(2, 70, 48).to(device)

            def call():
                layer.zero_grad()
                y, _ = layer(x)
                y.square().sum().backward()
                return {"y": y.detach(), **{key: p.grad.clone() for key, p in layer.named_parameters() if p.grad is not None}}

            same_twice(name, call, device)


def check_models():
    """What lrnn.load gives: the C++ model with its inner ops."""
    run = lrnn.train({"task": {"name": "parity"}, "model": {"width": 32, "mixer": {"name": "delta_product", "heads": 2, "key_dim": 16}},
                      "train": {"steps": 1, "batch": 2}}, **{"task.eval.samples": 2})["run"]
    for device in DEVICES:
        model, ids = lrnn.load(run).to(device), torch.randint(2, (3, 70)).to(device)

        def call():
            model.zero_grad()
            logits, _ = model(ids)
            logits.float().square().sum().backward()
            return {"logits": logits.detach(), **{key: p.grad.clone() for key, p in model.named_parameters() if p.grad is not None}}

        same_twice("model", call, device)


run(globals())
