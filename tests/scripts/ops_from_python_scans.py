#!/usr/bin/env python3
"""selective_scan, gated_linear_attention, rwkv7 and titans as Python sees them.

Compares each with its recurrence written out, runs torch.autograd.gradcheck and
torch.library.opcheck, and looks at an error message. LRNN_LIBRARY names the library. Without an
importable torch it is skipped (exit 77), unless LRNN_REQUIRE_PYTHON is set.
"""

import os
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(f"skipped: torch cannot be imported here ({error})")
    sys.exit(1 if os.environ.get("LRNN_REQUIRE_PYTHON") else 77)

B, T, H, K, V, D, N = 2, 5, 2, 3, 4, 3, 2


def scan_problem(dtype):
    rows, small = lambda n: torch.randn(B, T, n, dtype=dtype), lambda *s: torch.randn(*s, dtype=dtype)
    return [rows(D), rows(D), -torch.rand(D, N, dtype=dtype), rows(N), rows(N), small(D), rows(D), small(D), small(B, D, N)]


def scan_recurrence(u, delta, A, B_, C, skip, z, bias, h):
    outputs = []
    for t in range(u.size(1)):
        dt = F.softplus(delta[:, t] + bias)
        a = 2 * (dt[..., None] * A).exp() - 1
        h = a * h + (dt * u[:, t])[..., None] * B_[:, t, None]
        outputs.append(((h * C[:, t, None]).sum(-1) + skip * u[:, t]) * F.silu(z[:, t]))
    return torch.stack(outputs, 1), h


def gla_problem(dtype):
    rows = lambda n: torch.randn(B, T, H, n, dtype=dtype)
    return [rows(K), rows(K), rows(V), -rows(K).abs(), torch.randn(B, H, K, V, dtype=dtype)]


def gla_recurrence(q, k, v, log_gate, S):
    outputs = []
    for t in range(q.size(1)):
        S = log_gate[:, t].exp()[..., None] * S + k[:, t, :, :, None] * v[:, t, :, None]
        outputs.append((q[:, t, :, None] @ S).squeeze(-2) * q.size(-1) ** -0.5)
    return torch.stack(outputs, 1), S


def rwkv7_problem(dtype):
    q, k, v, log_gate, S = gla_problem(dtype)
    return [q, log_gate, k, v, F.normalize(torch.randn_like(k), dim=-1), 2 * torch.rand_like(k), S]


def rwkv7_recurrence(r, log_w, k, v, kk, a, S):
    outputs = []
    for t in range(r.size(1)):
        removed = kk[:, t, :, None] @ S
        S = log_w[:, t].exp()[..., None] * S - (a * kk)[:, t, ..., None] * removed
        S = S + k[:, t, :, :, None] * v[:, t, :, None]
        outputs.append((r[:, t, :, None] @ S).squeeze(-2))
    return torch.stack(outputs, 1), S


def titans_problem(dtype):
    q, k, v, _, S = gla_problem(dtype)
    return [q, F.normalize(k, dim=-1), v, *torch.rand(3, B, T, H, dtype=dtype), S, torch.randn_like(S)]


def titans_recurrence(q, k, v, theta, eta, alpha, M, S):
    outputs = []
    for t in range(q.size(1)):
        key, gate = k[:, t, :, :, None], lambda x: x[:, t, :, None, None]
        S = gate(eta) * S - gate(theta) * key * (key.mT @ M - v[:, t, :, None])
        M = (1 - gate(alpha)) * M + S
        outputs.append((q[:, t, :, None] @ M).squeeze(-2))
    return torch.stack(outputs, 1), M, S


OPS = {
    "selective_scan": (scan_problem, scan_recurrence, {"negative": True}),
    "gated_linear_attention": (gla_problem, gla_recurrence, {}),
    "rwkv7": (rwkv7_problem, rwkv7_recurrence, {}),
    "titans": (titans_problem, titans_recurrence, {}),
}


def check(name, problem, recurrence, options):
    op = getattr(torch.ops.lrnn, name)
    for dtype, limit in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        torch.manual_seed(0)
        inputs = problem(dtype)
        for got, want in zip(op(*inputs, **options), recurrence(*inputs)):
            assert (got - want).norm() <= limit * want.norm(), f"{name} {dtype}: {got} is not {want}"
    inputs = problem(torch.float64)
    torch.library.opcheck(op.default, inputs, options)
    inputs = [x.requires_grad_() for x in inputs]
    assert torch.autograd.gradcheck(lambda *x: op(*x, **options), inputs)
    torch.library.opcheck(op.default, inputs, options)
    try:
        op(inputs[0][..., :1], *inputs[1:], **options)
    except RuntimeError as error:
        assert f"[{name}]" in str(error) and "must be" in str(error), error
    else:
        raise AssertionError(f"{name}: wrong sizes were accepted")


torch.ops.load_library(os.environ["LRNN_LIBRARY"])
for name, parts in OPS.items():
    check(name, *parts)
    print(f"{name}: ok")
