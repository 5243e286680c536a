#!/usr/bin/env python3
"""fla's own DeltaNet on fla's kernels and, after lrnn.fla.enable(), on lrnn's: tokens per second, and the
two loss curves, from the same weights and tokens in one process. One JSON line per engine, then one that
compares them.

  PYTHONPATH=build/python python3 bench/fla_training.py [--steps 200] [--batch 16] [--length 2048]

The model is the 340M one of the papers (width 1024, 24 layers, 8 heads, range [-1,1]), float32 weights
with bfloat16 autocast, clipping and fused AdamW: what fla's users run. The text is drawn: a Zipf
distribution that moves with the token before, so there is something to learn at once. flash-linear-attention
and transformers are those that can be imported.
"""

import argparse
import json
import os
import statistics
import time
import warnings

import torch

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=200, help="updates of each engine")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--engines", nargs="+", choices=["fla", "lrnn"], default=["lrnn", "fla"])
    parser.add_argument("--device", default="cuda")
    return parser.parse_args()


def text(a, step):
    """Tokens of one update: rank r with probability near 1 / (r + 1), shifted by the rank before it."""
    generator = torch.Generator().manual_seed(step)
    u = torch.rand(a.batch, a.length, generator=generator, dtype=torch.float64)
    rank = (a.vocabulary**u).long() - 1
    before = rank.roll(1, dims=1) % 64
    return (rank + 7 * before) % a.vocabulary


def train(a, engine, batches):
    import fla.models
    import lrnn
    import transformers

    lrnn.fla.enable() if engine == "lrnn" else lrnn.fla.disable()
    torch.manual_seed(0)
    config = fla.models.DeltaNetConfig(
        hidden_size=a.width, num_hidden_layers=a.layers, num_heads=a.width // 128 or 1, vocab_size=a.vocabulary,
        allow_neg_eigval=True, use_cache=False)
    model = transformers.AutoModelForCausalLM.from_config(config).to(a.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    on_gpu = a.device != "cpu"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    losses, seconds, begin = [], [], time.perf_counter()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    first = None
    for tokens in batches:
        wait()
        start = time.perf_counter()
        with torch.autocast(torch.device(a.device).type, torch.bfloat16):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        wait()
        seconds.append(time.perf_counter() - start)
        first = first or time.perf_counter() - begin
    lrnn.fla.disable()
    losses = torch.stack(losses).tolist()
    step = statistics.median(seconds[len(seconds) // 2 :])
    print(json.dumps({
        "engine": engine, "parameters": sum(p.numel() for p in model.parameters()), "updates": len(losses),
        "tokens_per_s": a.batch * a.length / step, "step_ms": 1e3 * step, "first_update_s": first,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if on_gpu else None,
        "loss_first": losses[0], "loss_last": losses[-1]}), flush=True)
    return losses, step


def main():
    a = arguments()
    batches = [text(a, step).to(a.device) for step in range(a.steps)]
    runs = {engine: train(a, engine, batches) for engine in a.engines}
    if len(runs) < 2:
        return
    off = [abs(x - y) for x, y in zip(runs["fla"][0], runs["lrnn"][0])]
    print(json.dumps({
        "speedup": runs["fla"][1] / runs["lrnn"][1], "difference_mean": sum(off) / len(off), "difference_most": max(off),
        "difference_mean_second_half": sum(off[len(off) // 2 :]) / (len(off) - len(off) // 2)}))


if __name__ == "__main__":
    main()
