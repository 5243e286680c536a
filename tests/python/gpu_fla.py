#!/usr/bin/env python3
"""What lrnn.fla.enable() puts under fla on a GPU beside the recurrences: the norm, with and without a residual stream,
and the loss of a product, against float64; and what lrnn does not take stays with fla. Needs a GPU and fla.
"""

import os
import sys
import warnings

from lib.harness import close, run, skip
import torch
import torch.nn.functional as F

import lrnn

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")
if not torch.cuda.is_available():
    print("skipped: there is no GPU")
    sys.exit(77)
try:
    from fla.modules import FusedLinearCrossEntropyLoss, RMSNorm
except ImportError as error:
    skip(f"fla cannot be imported here ({error})")

BOUND = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


def gradients(outputs, inputs, directions):
    return torch.autograd.grad(sum((x.double() * d).sum() for x, d in zip(outputs, directions)), inputs)


def norm_of(x, residual, weight, eps):
    total = x if residual is None else x + residual
    return total * torch.rsqrt(total.square().mean(-1, keepdim=True) + eps) * weight, total


def check_norms():
    lrnn.fla.enable()
    for width, kind, stream in ((1024, torch.bfloat16, torch.float32), (100, torch.bfloat16, torch.bfloat16), (128, torch.float32, torch.float32),
                                (4096, torch.bfloat16, torch.float32), (1024, torch.float32, None), (128, torch.bfloat16, None)):
        torch.manual_seed(0)
        norm = RMSNorm(width, eps=1e-5).cuda()
        norm.weight.data += 0.3 * torch.randn(width, device="cuda")
        x = torch.randn(3, 37, width, device="cuda").to(kind).requires_grad_()
        residual = None if stream is None else torch.randn(3, 37, width, device="cuda").to(stream).requires_grad_()
        got = norm(x) if stream is None else norm(x, residual, True)
        got = (got,) if stream is None else got
        name = f"norm of {width}, {kind}, stream {stream}"
        assert "LayerNormFunction" not in got[0].grad_fn.name(), f"{name}: fla's own"
        assert got[0].dtype == kind and (stream is None or got[1].dtype == stream), name
        inputs = [t for t in (x, residual, norm.weight) if t is not None]
        wide = [t.detach().double().requires_grad_() for t in inputs]
        want = norm_of(wide[0], wide[1] if stream else None, wide[-1], 1e-5)[: len(got)]
        directions = [torch.randn_like(w) for w in want]
        for g, w in zip(got, want):
            close(g, w, BOUND[kind], name)
        for t, g, w in zip(inputs, gradients(got, inputs, directions), gradients(want, wide, directions)):
            assert g.dtype == t.dtype
            close(g, w, BOUND[kind], f"{name}: a gradient")
    half = RMSNorm(64).cuda()(torch.randn(2, 64, device="cuda").half())
    assert half.dtype == torch.float16  # fla's own


def check_loss_of_a_product():
    torch.manual_seed(0)
    weight = (0.1 * torch.randn(1000, 64, device="cuda")).requires_grad_()
    target = torch.randint(1000, (500,), device="cuda")
    target[::9] = -100
    for kind, autocast, reduction in ((torch.float32, False, "mean"), (torch.bfloat16, True, "mean"), (torch.float32, True, "sum")):
        x = torch.randn(500, 64, device="cuda").to(kind).requires_grad_()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            loss = FusedLinearCrossEntropyLoss(reduction=reduction)(x, target, weight)
        wide = [t.detach().double().requires_grad_() for t in (x, weight)]
        want = F.cross_entropy(wide[0] @ wide[1].T, target, reduction=reduction)
        close(loss, want, 1e-3 if autocast else 1e-5, f"loss {kind} {reduction}")
        for t, g, w in zip((x, weight), torch.autograd.grad(loss, (x, weight)), torch.autograd.grad(want, wide)):
            assert g.dtype == t.dtype
            close(g, w, 1e-2 if autocast else 1e-5, f"its gradient, {kind} {reduction}")
    smoothed = FusedLinearCrossEntropyLoss(label_smoothing=0.1)(x, target, weight)  # fla's own
    assert smoothed.isfinite()


run(globals())
