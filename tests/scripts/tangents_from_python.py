#!/usr/bin/env python3
"""Nothing that torch differentiates through our ops is wrong without a word.

Forward mode (torch.func.jvp, jacfwd, linearize, dual numbers) of every op against differences, for
every input by itself and whether gradients are wanted or not; torch.func.grad, vjp, jacrev and vmap
right or refused; and every other op of the library refuses derivatives that it does not have.
LRNN_LIBRARY names the library. Without an importable torch it is skipped (exit 77), unless
LRNN_REQUIRE_PYTHON is set.
"""

import os
import sys
import warnings

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"SKIP: torch cannot be imported here ({error})")
    sys.exit(1 if os.environ.get("LRNN_REQUIRE_PYTHON") else 77)

import torch.autograd.forward_ad as forward_ad

warnings.simplefilter("ignore")  # of loops in place of batching rules
torch.ops.load_library(os.environ["LRNN_LIBRARY"])
torch.manual_seed(0)
torch.set_num_threads(1)  # the problems are too small to share
lrnn = torch.ops.lrnn
B, T, N, H, K, V, D, W = 2, 3, 2, 2, 2, 3, 4, 3
BOUNDS = torch.tensor([0, 2, 2 * T])


def r(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def unit(*shape):
    return F.normalize(r(*shape), dim=-1)


def problems():
    """name: (op, inputs, options), of the ops that have derivatives."""
    p, P = (B, T), (1, 2 * T)
    delta = lambda b: [r(*b, H, K), unit(*b, N, H, K), r(*b, N, H, V),
                       2 * torch.rand(*b, N, H).double()]
    scan = lambda b: [r(*b, D), r(*b, D), -torch.rand(D, N).double(), r(*b, N), r(*b, N)]
    gla = lambda b: [r(*b, H, K), r(*b, H, K), r(*b, H, V), -r(*b, H, K).abs()]
    rwkv = lambda b: [r(*b, H, K), -r(*b, H, K).abs(), r(*b, H, K), r(*b, H, V), unit(*b, H, K),
                      r(*b, H, K).sigmoid()]
    mlstm = lambda b: [r(*b, H, K), r(*b, H, K), r(*b, H, V), r(*b, H), r(*b, H)]
    titans = lambda b: [r(*b, H, K), unit(*b, H, K), r(*b, H, V), *torch.rand(3, *b, H).double()]
    ttt = lambda b: [r(*b, H, 4), r(*b, H, 4), r(*b, H, 4), torch.rand(*b, H).double() / 4, r(H, 4), r(H, 4)]
    packed = {"cu_seqlens": BOUNDS}
    yield "delta_product", lrnn.delta_product, delta(p) + [-torch.rand(*p, H).double(), r(B, H, K, V)], {}
    yield "delta_product, gates of channels", lrnn.delta_product, delta(p) + [-torch.rand(*p, H, K).double(), r(B, H, K, V)], {}
    yield "delta_product, q to beta", lrnn.delta_product, delta(p), {"scale": 0.7}
    yield "delta_product, packed", lrnn.delta_product, delta(P), packed
    yield "selective_scan", lrnn.selective_scan, scan(p) + [r(D), r(*p, D), r(D), r(B, D, N)], {}
    yield "selective_scan, u to C", lrnn.selective_scan, scan(p), {"softplus": False, "negative": True}
    yield "selective_scan, packed", lrnn.selective_scan, scan(P), packed
    yield "gated_linear_attention", lrnn.gated_linear_attention, gla(p) + [r(B, H, K, V)], {}
    yield "gated_linear_attention, packed", lrnn.gated_linear_attention, gla(P), {"negative": True, **packed}
    yield "rwkv7", lrnn.rwkv7, rwkv(p) + [r(B, H, K, V)], {}
    yield "rwkv7, packed", lrnn.rwkv7, rwkv(P), {"scale": 0.5, **packed}
    yield "mlstm", lrnn.mlstm, mlstm(p) + [r(B, H, K, V), r(B, H, K), r(B, H)], {}
    yield "mlstm, packed", lrnn.mlstm, mlstm(P), packed
    yield "slstm", lrnn.slstm, [r(*p, H, 4, K), r(H, K, 4, K), r(H, 4, K), r(B, 4, H, K).abs()], {}
    yield "slstm, packed", lrnn.slstm, [r(*P, H, 4, K), r(H, K, 4, K)], packed
    yield "titans", lrnn.titans, titans(p) + [r(B, H, K, V), r(B, H, K, V)], {}
    yield "titans, packed", lrnn.titans, titans(P), {"scale": 0.5, **packed}
    yield "ttt", lrnn.ttt, ttt(p) + [r(B, 2, H, 4, 4), r(B, 2, H, 4)], {"mini_batch": 2}
    yield "ttt, packed", lrnn.ttt, ttt(P), {"mini_batch": 3, "eps": 0.1, **packed}
    yield "rms_norm", lrnn.rms_norm, [r(*p, D), r(D)], {"eps": 1e-3}
    yield "l2_norm", lrnn.l2_norm, [r(*p, D)], {"eps": 1e-3}
    yield "wide_sigmoid", lrnn.wide_sigmoid, [r(*p, D)], {"scale": 2.0}
    yield "swiglu", lrnn.swiglu, [r(*p, D), r(*p, D)], {}
    yield "swiglu_halves", lrnn.swiglu_halves, [r(*p, D)], {}
    yield "short_conv", lrnn.short_conv, [r(*p, D), r(D, 1, W), r(D), r(B, D, W)], {}
    yield "short_conv, packed", lrnn.short_conv, [r(*P, D), r(D, 1, W)], {"silu": False, **packed}


def flat(out):
    return torch.cat([x.reshape(-1) for x in (out if isinstance(out, (tuple, list)) else (out,))])


def close(got, want, limit=1e-6):
    return got.shape == want.shape and bool((got - want).norm() <= limit * want.norm() + 1e-12)


def differences(f, xs, along):
    h = 1e-6
    step = lambda s: f(*[x if t is None else x + s * t for x, t in zip(xs, along)])
    return (step(h) - step(-h)) / (2 * h)


def tangent(f, xs, along):
    with forward_ad.dual_level():
        duals = [x if t is None else forward_ad.make_dual(x, t) for x, t in zip(xs, along)]
        out = f(*duals)
        given = forward_ad.unpack_dual(out).tangent
        return torch.zeros_like(out) if given is None else given.detach()


def check_forward_mode(name, f, xs):
    for i in range(len(xs)):  # every input by itself: one that nobody looked at would be missed
        along = [torch.randn_like(x) if i == j else None for j, x in enumerate(xs)]
        want = differences(f, xs, along)
        assert close(tangent(f, xs, along), want), f"{name}: the tangent along input {i} is wrong"
        leaves = [x.clone().requires_grad_() for x in xs]
        assert close(tangent(f, leaves, along), want), f"{name}: beside gradients, input {i}"
        with torch.no_grad():
            assert close(tangent(f, leaves, along), want), f"{name}: under no_grad, input {i}"


def check_transforms(name, f, xs):
    along = [torch.randn_like(x) for x in xs]
    want = differences(f, xs, along)
    assert close(torch.func.jvp(f, tuple(xs), tuple(along))[1], want), f"{name}: jvp"
    if name in ("gated_linear_attention", "rms_norm", "short_conv"):  # a trace takes a second
        assert close(torch.func.linearize(f, *xs)[1](*along), want), f"{name}: linearize"
    first = differences(f, xs, [along[0]] + [None] * (len(xs) - 1))
    jacobian = torch.func.jacfwd(f, 0)(*xs).flatten(1)
    assert close(jacobian @ along[0].reshape(-1), first), f"{name}: jacfwd"
    # vmap inside jvp
    both, ways = [torch.stack([x, x + 0.1]) for x in xs], [torch.stack([t, -t]) for t in along]
    each = [differences(f, [x[i] for x in both], [t[i] for t in ways]) for i in range(2)]
    got = torch.func.jvp(torch.func.vmap(f), tuple(both), tuple(ways))[1]
    assert close(got, torch.stack(each)), f"{name}: jvp of vmap"
    # The gradient of a tangent
    dy, turn = torch.randn_like(want), torch.randn_like(xs[0])
    inner = lambda x: torch.func.jvp(f, (x, *xs[1:]), tuple(along))[1] @ dy
    got = (torch.func.grad(inner)(xs[0]) * turn).sum()
    assert close(got, differences(inner, [xs[0]], [turn]), 1e-5), f"{name}: grad of jvp"


def check_bfloat16(name, op, xs, options):
    """Through the definition the same values and types come out as from the kernel."""
    xs = [x.bfloat16() if x.dim() > 1 else x.float() for x in xs]
    try:
        want = op(*xs, **options)
    except RuntimeError:  # states and the like are float32
        return
    with forward_ad.dual_level():
        got = op(forward_ad.make_dual(xs[0], torch.ones_like(xs[0])), *xs[1:], **options)
    for x, y in zip(*((o if isinstance(o, tuple) else (o,)) for o in (got, want))):
        assert x.dtype == y.dtype and close(x.double(), y.double(), 1e-2), f"{name}: in bfloat16"


def right_or_refused(what, f, want, limit=1e-9):
    try:
        got = f()
    except (RuntimeError, NotImplementedError):
        return
    assert close(got, want, limit), f"{what} is wrong without a word"


def check_reverse_mode(name, f, xs):
    dy = torch.randn_like(f(*xs))
    leaves = [x.clone().requires_grad_() for x in xs]
    want = flat(torch.autograd.grad(f(*leaves), leaves, dy))
    every = tuple(range(len(xs)))
    loss = lambda *a: f(*a) @ dy
    jacobians = lambda: torch.func.jacrev(f, every)(*xs)
    right_or_refused(f"{name}: grad", lambda: flat(torch.func.grad(loss, every)(*xs)), want)
    right_or_refused(f"{name}: vjp", lambda: flat(torch.func.vjp(f, *xs)[1](dy)), want)
    right_or_refused(f"{name}: jacrev", lambda: flat([dy @ j.flatten(1) for j in jacobians()]), want)
    batch = [torch.stack([x, x + 0.1]) for x in xs]
    each = torch.stack([f(*[x[i] for x in batch]) for i in range(2)])
    right_or_refused(f"{name}: vmap", lambda: torch.func.vmap(f)(*batch), each)

    # The gradient is linear in dy, so its tangent along dy is known.
    def along_dy():
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(torch.zeros_like(dy), dy)
            out = torch.autograd.grad(f(*leaves), leaves, dual)
            given = [forward_ad.unpack_dual(x).tangent for x in out]
            return flat([torch.zeros_like(x) if t is None else t for x, t in zip(out, given)])

    right_or_refused(f"{name}: the tangent of a gradient", along_dy, want)

    # Forward over reverse
    x, turn = xs[0], torch.randn_like(xs[0])
    of_first = lambda x: loss(x, *xs[1:])

    def eager(x):
        leaf = x.clone().requires_grad_()
        return torch.autograd.grad(of_first(leaf), leaf)[0]

    product = lambda: torch.func.jvp(torch.func.grad(of_first), (x,), (turn,))[1]
    right_or_refused(f"{name}: jvp of grad", product, differences(eager, [x], [turn]), 1e-5)


def check_others(known):
    """What is not an op with derivatives refuses them, on every device."""
    others = 0
    for name in torch._C._dispatch_get_all_op_names():
        # delta_rule is made of others, whose derivatives it has.
        if not name.startswith("lrnn::") or name[6:] in known or name in ("lrnn::gated_mlp_fits", "lrnn::run_program", "lrnn::delta_rule"):
            continue
        others += 1
        refuses = torch._C._dispatch_has_kernel_for_dispatch_key(name, "Autograd")
        assert refuses, f"torch would take the derivative of {name} for zero"
    assert others >= 29, f"only {others} inner ops were found"
    x, index = r(4, D), torch.tensor([0, 2])
    calls = {
        "take_rows": lambda x: lrnn.take_rows(x, index),
        "give_rows": lambda x: lrnn.give_rows(x[:2], index, [4, D]),
    }
    for name, call in calls.items():
        ways = {
            "a tangent": lambda: tangent(call, [x], [x]),
            "a jvp": lambda: torch.func.jvp(call, (x,), (x,)),
            "a grad": lambda: torch.func.grad(lambda x: call(x).sum())(x),
            "a gradient": lambda: call(x.clone().requires_grad_()).sum().backward(),
        }
        for what, derive in ways.items():
            try:
                derive()
            except RuntimeError as error:
                assert f"lrnn::{name}" in str(error), error
            else:
                raise AssertionError(f"lrnn::{name} gave {what} without having a derivative")


known = set()
for name, op, xs, options in problems():
    known.add(name.split(",")[0])
    f = lambda *a: flat(op(*a, **options))
    check_forward_mode(name, f, xs)
    check_transforms(name, f, xs)
    check_reverse_mode(name, f, xs)
    check_bfloat16(name, op, xs, options)
    print(f"{name}: ok")
check_others(known)
print("the others: ok")
