#!/usr/bin/env python3
"""lrnn.linear_cross_entropy beside torch's own: values, gradients, types, autocast, transforms, compile."""

from lib.harness import refused, run  # first: it skips where there is no torch
import torch
import torch.nn.functional as F

import lrnn


def problem(rows=70, width=12, vocabulary=33, seed=0):
    torch.manual_seed(seed)
    target = torch.randint(vocabulary, (rows,))
    target[::7] = -1
    return torch.randn(rows, width), torch.randn(vocabulary, width), target


def check_values_and_gradients():
    h, weight, target = problem()
    for dtype, limit in ((torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 2e-3)):
        x, w = h.to(dtype, copy=True).requires_grad_(), weight.to(dtype, copy=True).requires_grad_()
        loss, right = lrnn.linear_cross_entropy(x.view(7, 10, 12), w, target.view(7, 10), share=0.5)
        (3 * loss).backward()
        a, b = x.detach().double().requires_grad_(), w.detach().double().requires_grad_()
        logits = a @ b.T
        want = 0.5 * F.cross_entropy(logits, target, reduction="sum", ignore_index=-1)
        (3 * want).backward()
        assert abs(loss.item() / want.item() - 1) < limit, dtype
        assert right.item() == (logits.argmax(-1) == target).sum().item(), dtype
        for got, wanted in ((x.grad, a.grad), (w.grad, b.grad)):
            assert got.dtype == dtype and (got.double() - wanted).norm() < limit * wanted.norm(), dtype


def check_autocast():
    """Rows take the type that is asked for; the weight, and so its gradient, stays as it is."""
    h, weight, target = problem()
    weight.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        loss, _ = lrnn.linear_cross_entropy(h, weight, target)
    want, _ = lrnn.linear_cross_entropy(h.bfloat16(), weight, target)
    assert torch.equal(loss, want)
    loss.backward()
    assert weight.grad.dtype == torch.float32


def check_transforms():
    h, weight, target = problem()
    function = lambda x, w: lrnn.linear_cross_entropy(x, w, target)[0]
    plain = lambda x, w: F.cross_entropy(x @ w.T, target, reduction="sum", ignore_index=-1)
    x, w = h.double(), weight.double()
    for got, want in zip(torch.func.grad(function, (0, 1))(x, w), torch.func.grad(plain, (0, 1))(x, w)):
        torch.testing.assert_close(got, want)
    batch = torch.stack([x, 2 * x, -x])
    torch.testing.assert_close(torch.func.vmap(function, (0, None))(batch, w), torch.stack([plain(y, w) for y in batch]))
    for got, want in zip(torch.func.jvp(function, (x, w), (w[0] + 0 * x, w)), torch.func.jvp(plain, (x, w), (w[0] + 0 * x, w))):
        torch.testing.assert_close(got, want)


def check_opcheck_and_meta():
    h, weight, target = problem()
    torch.library.opcheck(torch.ops.lrnn.linear_cross_entropy.default,
                          (h.requires_grad_(), weight.requires_grad_(), target, 0.5))
    loss, right = lrnn.linear_cross_entropy(h.to("meta"), weight.to("meta"), target.to("meta"))
    assert loss.shape == right.shape == ()


def check_compile():
    h, weight, target = problem()
    function = lambda x, w: lrnn.linear_cross_entropy(x, w, target)[0]
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    x, w = h.clone().requires_grad_(), weight.clone().requires_grad_()
    compiled(x, w).backward()
    y, v = h.clone().requires_grad_(), weight.clone().requires_grad_()
    function(y, v).backward()
    assert torch.equal(x.grad, y.grad) and torch.equal(w.grad, v.grad)


def check_sentences():
    h, weight, target = problem()
    refused(lrnn.Error, "is not below V = 33", lrnn.linear_cross_entropy, h, weight, target + 40)
    refused(lrnn.Error, "weight must be", lrnn.linear_cross_entropy, h, weight[:, 1:], target)
    refused(RuntimeError, "target is Float", lrnn.linear_cross_entropy, h, weight, target.float())


run(globals())
