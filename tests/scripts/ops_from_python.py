#!/usr/bin/env python3
"""The ops as Python sees them: the same library, loaded with torch.ops.load_library.

Compares lrnn::delta_product with the recurrence written out, runs torch.autograd.gradcheck and
torch.library.opcheck, and looks at an error message. LRNN_LIBRARY names the library. Without an
importable torch it is skipped (exit 77), unless LRNN_REQUIRE_PYTHON is set.
"""

import os
import sys

try:
    import torch
except ImportError as error:
    print(f"skipped: torch cannot be imported here ({error})")
    sys.exit(1 if os.environ.get("LRNN_REQUIRE_PYTHON") else 77)


def problem(dtype, B=2, T=5, N=2, H=2, K=3, V=4, grad=False):
    torch.manual_seed(0)
    q = torch.randn(B, T, H, K, dtype=dtype)
    k = torch.nn.functional.normalize(torch.randn(B, T, N, H, K, dtype=dtype), dim=-1)
    v = torch.randn(B, T, N, H, V, dtype=dtype)
    beta = 2 * torch.rand(B, T, N, H, dtype=dtype)
    log_gate = -torch.rand(B, T, H, dtype=dtype)
    state = torch.randn(B, H, K, V, dtype=dtype)
    return tuple(x.requires_grad_(grad) for x in (q, k, v, beta, log_gate, state))


def recurrence(q, k, v, beta, log_gate, state):
    S, outputs = state, []
    for t in range(q.size(1)):
        S = S * log_gate[:, t].exp()[..., None, None]
        for j in range(k.size(2)):
            key = k[:, t, j].unsqueeze(-1)
            error = v[:, t, j].unsqueeze(-2) - key.mT @ S
            S = S + beta[:, t, j][..., None, None] * key @ error
        outputs.append((q[:, t].unsqueeze(-2) @ S).squeeze(-2) * q.size(-1) ** -0.5)
    return torch.stack(outputs, 1), S


def check_against_recurrence():
    for dtype, limit in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        inputs = problem(dtype)
        for got, want in zip(torch.ops.lrnn.delta_product(*inputs), recurrence(*inputs)):
            assert (got - want).norm() <= limit * want.norm(), f"{dtype}: {got} is not {want}"


def check_gradients():
    inputs = problem(torch.float64, grad=True)
    assert torch.autograd.gradcheck(torch.ops.lrnn.delta_product, inputs)
    # Only what was asked for: no gate, no state, a gradient for the keys alone.
    q, k, v, beta, _, _ = problem(torch.float64)
    k.requires_grad_()
    assert torch.autograd.gradcheck(lambda k: torch.ops.lrnn.delta_product(q, k, v, beta), (k,))


def check_registration():
    for grad in (False, True):
        inputs = problem(torch.float64, grad=grad)
        torch.library.opcheck(torch.ops.lrnn.delta_product.default, inputs)
        torch.library.opcheck(torch.ops.lrnn.delta_product.default, inputs[:4])
    packed = problem(torch.float64, B=1)[:4]
    torch.library.opcheck(
        torch.ops.lrnn.delta_product.default,
        packed,
        {"cu_seqlens": torch.tensor([0, 2, 5])},
        # The lengths are read on the host, which a tracer cannot follow.
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )


def check_row_ops():
    lrnn, r = torch.ops.lrnn, lambda *size: torch.randn(*size).double().requires_grad_()
    for op, inputs in ((lrnn.rms_norm, (r(2, 3, 4), r(4), 1e-3)), (lrnn.l2_norm, (r(2, 3, 4), 1e-3)),
                       (lrnn.swiglu, (r(3, 4), r(3, 4))), (lrnn.swiglu_halves, (r(3, 4),)),
                       (lrnn.wide_sigmoid, (r(3, 4), 2.0)),
                       (lrnn.short_conv, (r(2, 5, 3), r(3, 1, 4), r(3), r(2, 3, 4)))):
        torch.library.opcheck(op.default, inputs)
    # All arguments of short_conv may be given by position.
    x, weight, bounds = r(1, 5, 3), r(3, 1, 4), torch.tensor([0, 2, 5])
    y, state = lrnn.short_conv(x, weight, None, None, False, bounds)
    again, _ = lrnn.short_conv(x, weight, silu=False, cu_seqlens=bounds)
    assert torch.equal(y, again) and state.shape == (2, 3, 4)


def check_calls_are_seen():
    """Back ends are called past torch's dispatcher, but not where somebody watches it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            names.add(op.name())
            return op(*args, **(kwargs or {}))

    def step():
        x, weight = torch.randn(3, 4, requires_grad=True), torch.ones(4)
        torch.ops.lrnn.rms_norm(x, weight, 1e-3).sum().backward()

    wanted, names = {"lrnn::rms_norm_forward", "lrnn::rms_norm_backward"}, set()
    with Seen():
        step()
    assert wanted <= names, f"a mode saw {names}"
    with torch.autograd.profiler.profile(use_kineto=False) as profile:
        step()
    names = {event.key for event in profile.key_averages()}
    assert wanted <= names, f"a profiler saw {names}"


def check_errors():
    q, k, v, beta, log_gate, state = problem(torch.float32)
    try:
        torch.ops.lrnn.delta_product(q, k[..., :2], v, beta)
    except RuntimeError as error:
        assert "[delta_product] q must be [2, 5, 2, 2] = [B,T,G,K], got [2, 5, 2, 3]" in str(error), error
    else:
        raise AssertionError("wrong sizes were accepted")


torch.ops.load_library(os.environ["LRNN_LIBRARY"])
for check in (check_against_recurrence, check_gradients, check_registration, check_row_ops,
              check_calls_are_seen, check_errors):
    check()
    print(f"{check.__name__}: ok")
