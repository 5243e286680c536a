#!/usr/bin/env python3
"""Microseconds that a call from Python takes before the work is done or under way: tiny inputs, one thread.

    PYTHONPATH=build/python bench/call_time.py [cpu|cuda]

On a GPU it is the host's time; nobody waits for the kernels. Best of 15 means over 300 calls. Then, on a GPU, calls of a
size that keeps it busy beside the same calls recorded as a CUDA graph and replayed: milliseconds, median of 15 rounds in turn.
"""

import statistics
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


# ------------------------------------------------------------------------------------------- beside a replay
def between_events(call, calls=20):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / calls


def beside_replay(name, call):
    """A new graph keeps its memory, so calls and replays use the same kernels on memory of their own."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    for _ in range(3):
        call(), graph.replay()
    rounds = [(between_events(call), between_events(graph.replay)) for _ in range(15)]
    called, replayed = (statistics.median(column) for column in zip(*rounds))
    print(f"{name:44} {called:8.4f} {replayed:10.4f} {called / replayed:7.3f}")


def large(B=8, T=4096, H=16, D=128):
    draw = lambda *shape: torch.randn(*shape, device=device, dtype=torch.bfloat16)  # noqa: E731
    q, k, v, weight = (draw(B, T, H, D) for _ in range(4))
    beta = 2 * draw(B, T, H).sigmoid()
    gate = -torch.rand(B, T, H, device=device)
    print(f"\n{f'ms at ({B},{T},{H},{D},{D}), bfloat16':44} {'called':>8} {'replayed':>10} {'ratio':>7}")
    for accuracy in (None, "fast"):
        lrnn.fla.functions.accuracy = accuracy
        for title, function, inputs in (("chunk_delta_rule", rule, (q, k, v, beta)), ("chunk_gated_delta_rule", gated, (q, k, v, gate, beta))):
            forward = lambda: function(*inputs, use_qk_l2norm_in_kernel=True)  # noqa: E731
            leaves = [x.detach().clone().requires_grad_() for x in inputs]

            def both():
                o, _ = function(*leaves, use_qk_l2norm_in_kernel=True)
                torch.autograd.grad(o, leaves, weight)

            name = f"{title}, {accuracy or 'accurate'}"
            with torch.no_grad():
                beside_replay(name + ": forward", forward)
            beside_replay(name + ": and backward", both)
    lrnn.fla.functions.accuracy = None


if device == "cuda":
    large()
