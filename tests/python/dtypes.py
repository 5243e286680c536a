#!/usr/bin/env python3
"""The types that every function takes: float16 (computed in float32), int32 bounds, autocast; and what
is refused, in which words.
"""

from lib.harness import close, refused, run  # first: it skips where there is no torch
import torch
from lib.problems import MAY_BE_WIDE, cast, everything, problems, results

import lrnn


def check_float16():
    for packed in (False, True):
        for name, function, tensors, options in problems(packed=packed):
            half = cast(name, tensors, torch.float16)
            wide = {key: x.float() for key, x in half.items()}
            got, want = everything(function, half, options), everything(function, wide, options)
            for key, x in got.items():
                as_given = half.get(key[1:])
                type_ = as_given.dtype if key[0] == "d" else torch.float32 if key != "result 0" else torch.float16
                if name == "short_conv" and key == "result 1":  # its state is rows of x
                    type_ = torch.float16
                assert x.dtype == type_, f"{name}: {key} is {x.dtype}"
                close(x, want[key], 2e-3, f"{name}: {key}")
                if key == "result 0":  # rounded once, at the end
                    assert torch.equal(x, want[key].half()), f"{name}: {key}"
    with torch.no_grad():
        for name, function, tensors, options in problems():
            half = cast(name, tensors, torch.float16)
            want = results(function(**{key: x.float() for key, x in half.items()}, **options))[0].half()
            assert torch.equal(results(function(**half, **options))[0], want), name


def check_float16_is_not_mixed():
    q, k, v, beta = torch.randn(1, 3, 1, 4), torch.randn(1, 3, 1, 1, 4), torch.randn(1, 3, 1, 1, 4), torch.rand(1, 3, 1, 1)
    refused(lrnn.Error, "[delta_product] v is Float, but it must have the dtype of k", lrnn.delta_product,
            q.half(), k.half(), v, beta.half())
    refused(lrnn.Error, "[delta_product] v is Half, but it must have the dtype of k", lrnn.delta_product, q, k, v.half(), beta)
    o, state = lrnn.delta_product(q.half(), k.half(), v.half(), beta)  # what may be wide may be so here
    assert o.dtype == torch.float16 and state.dtype == torch.float32


def check_int32_bounds():
    for name, function, tensors, options in problems(packed=True):
        want = everything(function, tensors, options)
        narrow = {**options, "cu_seqlens": options["cu_seqlens"].int()}
        for key, x in everything(function, tensors, narrow).items():
            assert torch.equal(x, want[key]), f"{name}: {key}"
        refused(lrnn.Error, "cu_seqlens is Short, but it must be int64 or int32", function, **tensors,
                cu_seqlens=options["cu_seqlens"].short())
        refused(lrnn.Error, "cu_seqlens must run from 0 to T = 10, got 0 to 9", function, **tensors,
                cu_seqlens=torch.tensor([0, 3, 9], dtype=torch.int32))


def check_autocast():
    for dtype in (torch.bfloat16, torch.float16):
        for name, function, tensors, options in problems():
            with torch.autocast("cpu", dtype):
                got = results(function(**tensors, **options))
            if name in ("rms_norm", "l2_norm", "swiglu"):
                want = results(function(**tensors, **options))  # float32 stays
            else:
                want = results(function(**cast(name, tensors, dtype, leave=MAY_BE_WIDE), **options))
            for i, (x, y) in enumerate(zip(got, want)):
                assert x.dtype == y.dtype and torch.equal(x, y), f"{name}: result {i} under {dtype}"


def check_autocast_mixes():
    """A model's products are narrow there, while its norms are wide: they meet here."""
    for name, function, tensors, options in problems():
        mixed = {key: x.bfloat16() if i % 2 else x for i, (key, x) in enumerate(tensors.items())}
        leaves = {key: x.requires_grad_() for key, x in mixed.items()}
        with torch.autocast("cpu", torch.bfloat16):
            out = results(function(**leaves, **options))
        sum(y.float().sum() for y in out).backward()
        assert out[0].dtype == (torch.float32 if name in ("rms_norm", "swiglu", "l2_norm") else torch.bfloat16), name
        for key, x in leaves.items():
            assert x.grad is None or (x.grad.dtype == x.dtype and x.grad.isfinite().all()), f"{name}: d{key}"


def check_autocast_leaves_float64():
    for name, function, tensors, options in problems():
        double = {key: x.double() for key, x in tensors.items()}
        with torch.autocast("cpu", torch.bfloat16):
            got = results(function(**double, **options))
        for x, y in zip(got, results(function(**double, **options))):
            assert torch.equal(x, y), name


def check_errors_are_ours():
    x = torch.randn(2, 3)
    refused(lrnn.Error, "[rms_norm] weight must be [3] = [D], got [2]", lrnn.rms_norm, x, torch.ones(2), 1e-5)
    refused(RuntimeError, "[l2_norm] x is Int, but it must be float32, float64, bfloat16 or float16", lrnn.l2_norm, x.int(), 1e-5)
    refused(lrnn.Error, "[delta_product] accuracy must be fast, accurate or exact, got 'best'", lrnn.delta_product,
            torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1, 1), torch.ones(1, 1, 1, 1, 1), torch.ones(1, 1, 1, 1), accuracy="best")
    refused(TypeError, "unexpected keyword", lrnn.delta_product, precision="fast")


run(globals())
