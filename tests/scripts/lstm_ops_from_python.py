#!/usr/bin/env python3
"""lrnn::slstm and lrnn::mlstm as Python sees them: against their recurrences written out,
torch.autograd.gradcheck, torch.library.opcheck and an error message. LRNN_LIBRARY names the
library. Without an importable torch it is skipped (exit 77), unless LRNN_REQUIRE_PYTHON is set.
"""

import os
import sys

try:
    import torch
except ImportError as error:
    print(f"skipped: torch cannot be imported here ({error})")
    sys.exit(1 if os.environ.get("LRNN_REQUIRE_PYTHON") else 77)

import torch.nn.functional as F

B, T, H, D = 2, 5, 2, 3


def slstm_problem(grad=False):
    torch.manual_seed(0)
    f64 = dict(dtype=torch.float64)
    wx = torch.randn(B, T, H, 4, D, **f64)
    R = torch.randn(H, D, 4, D, **f64)
    bias = torch.randn(H, 4, D, **f64)
    state = torch.randn(B, 4, H, D, **f64)
    state[:, 2].abs_()
    return tuple(x.requires_grad_(grad) for x in (wx, R, bias, state))


def slstm(wx, R, bias, state):
    h, c, n, m = state.unbind(1)
    outputs = []
    for t in range(wx.size(1)):
        raw = wx[:, t] + bias + torch.einsum("bhd,hdgo->bhgo", h, R)
        i, f, z, o = raw.unbind(2)
        a = F.logsigmoid(f) + m
        m = torch.maximum(i, a)
        c = (a - m).exp() * c + (i - m).exp() * z.tanh()
        n = (a - m).exp() * n + (i - m).exp()
        h = o.sigmoid() * c / n
        outputs.append(h)
    return torch.stack(outputs, 1), torch.stack((h, c, n, m), 1)


def mlstm_problem(grad=False):
    torch.manual_seed(0)
    f64 = dict(dtype=torch.float64)
    q, k, v = (torch.randn(B, T, H, D, **f64) for _ in range(3))
    i, f = torch.randn(B, T, H, **f64), torch.randn(B, T, H, **f64)
    C, n, m = torch.randn(B, H, D, D, **f64), torch.randn(B, H, D, **f64), torch.randn(B, H, **f64)
    return tuple(x.requires_grad_(grad) for x in (q, k, v, i, f, C, n, m))


def mlstm(q, k, v, i, f, C, n, m):
    outputs = []
    for t in range(q.size(1)):
        a = F.logsigmoid(f[:, t]) + m
        m = torch.maximum(a, i[:, t])
        forget, write = (a - m).exp()[..., None], (i[:, t] - m).exp()[..., None]
        key = k[:, t] * D**-0.5
        C = forget[..., None] * C + (write * key)[..., None] * v[:, t].unsqueeze(-2)
        n = forget * n + write * key
        size = torch.maximum((n * q[:, t]).sum(-1).abs(), (-m).exp()) + 1e-6
        outputs.append(torch.einsum("bhk,bhkv->bhv", q[:, t], C) / size[..., None])
    return torch.stack(outputs, 1), C, n, m


CASES = {"slstm": (slstm_problem, slstm), "mlstm": (mlstm_problem, mlstm)}


def check_against_recurrence(name):
    problem, recurrence = CASES[name]
    inputs = problem()
    for got, want in zip(getattr(torch.ops.lrnn, name)(*inputs), recurrence(*inputs)):
        assert (got - want).norm() <= 1e-12 * want.norm(), f"{name}: {got} is not {want}"


def check_gradients(name):
    assert torch.autograd.gradcheck(getattr(torch.ops.lrnn, name), CASES[name][0](grad=True))


def check_registration(name):
    op = getattr(torch.ops.lrnn, name).default
    for grad in (False, True):
        torch.library.opcheck(op, CASES[name][0](grad=grad))


def check_errors(name):
    inputs = list(CASES[name][0]())
    inputs[1] = inputs[1][..., :2]
    try:
        getattr(torch.ops.lrnn, name)(*inputs)
    except RuntimeError as error:
        assert f"[{name}] " in str(error) and " must be [2, " in str(error), error
    else:
        raise AssertionError("wrong sizes were accepted")


torch.ops.load_library(os.environ["LRNN_LIBRARY"])
for name in CASES:
    for check in (check_against_recurrence, check_gradients, check_registration, check_errors):
        check(name)
        print(f"{check.__name__} of {name}: ok")
