#!/usr/bin/env python3
"""Microseconds that a call from Python takes before the work is done or under way: tiny inputs, one thread.

    PYTHONPATH=build/python bench/call_time.py [cpu|cuda]

On a GPU it is the host's time; nobody waits for the kernels. Best of 15 means over 300 calls.
"""

import sys
import time

import torch

import lrnn

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
torch.set_num_threads(1)
torch.manual_seed(0)


def wait():
    if device == "cuda":
        torch.cuda.synchronize()


def microseconds(call, calls=300, rounds=15):
    call()
    best = float("inf")
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, time.perf_counter() - start)
    return best / calls * 1e6


def row(name, function, *tensors, **options):
    plain = [x.detach() for x in tensors]
    leaves = [x.detach().clone().requires_grad_() for x in tensors]
    without, with_graph = microseconds(lambda: function(*plain, **options)), microseconds(lambda: function(*leaves, **options))
    print(f"{name:44} {without:8.1f} {with_graph:10.1f}")


# bfloat16 and heads of 64 take the kernels that training takes on a GPU; on a CPU a call is the smallest.
kind, size = (torch.bfloat16, 64) if device == "cuda" else (torch.float32, 4)
q, k, v = torch.randn(3, 1, 16 if device == "cuda" else 1, 1, size, device=device, dtype=kind)
beta = torch.rand(q.shape[:3], device=device, dtype=kind)
steps = q, k.unsqueeze(2), v.unsqueeze(2), beta.unsqueeze(2)
rule, gated = lrnn.fla.chunk_delta_rule, lrnn.fla.chunk_gated_delta_rule
print(f"{'us a call, forward, on ' + device:44} {'no grad':>8} {'with graph':>10}")
row("torch.add", torch.add, q, k)
row("torch.ops.aten.add", torch.ops.aten.add.Tensor, q, k)
row("torch.ops.lrnn.delta_product", torch.ops.lrnn.delta_product.default, *steps)
row("lrnn.delta_product", lrnn.delta_product, *steps)
row("lrnn.fla.chunk_delta_rule", rule, q, k, v, beta)
row("lrnn.fla.chunk_delta_rule, normalised", rule, q, k, v, beta, use_qk_l2norm_in_kernel=True)
row("lrnn.fla.chunk_gated_delta_rule", gated, q, k, v, -beta, beta)
