#!/usr/bin/env python3
"""fla's own model on fla's kernels and, after lrnn.fla.enable(), on lrnn's: tokens per second and loss curves,
from the same weights and tokens in one process. One JSON line per engine, then one that compares them.

  PYTHONPATH=build/python python3 bench/fla_training.py                   # the 340M DeltaNet, 200 updates of 16 x 2048
  ... --weights FOLDER --tokens windows.npy --eval held_out.npy --json F  # a model and windows of yours

Trained as fla's users do: float32 weights with bfloat16 autocast, clipping, fused AdamW. Without --weights it is
the papers' 340M DeltaNet (width 1024, 24 layers, 8 heads, range [-1,1]) with fla's initial weights; FOLDER is
what `lrnn export --dtype float32` writes. Without --tokens the text is drawn: a Zipf distribution that moves with
the token before, so there is something to learn at once. A file of tokens is [updates, batch, length]; of a
window's T tokens T-1 are targets. The engine lrnn-fast is lrnn with accuracy="fast". The learning rate follows
src/training/schedule.cpp. flash-linear-attention and transformers are those that can be imported.
"""

import argparse
import gc
import json
import math
import os
import statistics
import time
import warnings

import torch

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")
BLOCK = 10  # updates between two looks at the clock: nobody waits for a GPU after every one


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--engines", nargs="+", choices=["lrnn", "lrnn-fast", "fla"], default=["lrnn", "fla"])
    add("--steps", type=int, default=200, help="updates of each engine")
    add("--weights", metavar="FOLDER", help="config.json and model.safetensors to begin with")
    add("--tokens", metavar="FILE", help=".npy, integers [updates, batch, length]")
    add("--eval", metavar="FILE", help=".npy, integers [batches, batch, length]: the loss on them at the end")
    add("--batch", type=int, default=16)
    add("--length", type=int, default=2048)
    add("--width", type=int, default=1024)
    add("--layers", type=int, default=24)
    add("--vocabulary", type=int, default=32000)
    add("--lr", type=float, default=3e-4)
    add("--warmup", type=int, default=0)
    add("--schedule", choices=["constant", "cosine"], default="constant")
    add("--lr-floor", type=float, default=0.1, help="where the cosine ends, of --lr")
    add("--horizon", type=int, help="the update at which it ends (--steps)")
    add("--betas", type=float, nargs=2, default=[0.9, 0.95])
    add("--eps", type=float, default=1e-8)
    add("--weight-decay", type=float, default=0.01)
    add("--decay", choices=["all", "matrices"], default="all", help="matrices: neither vectors nor the embedding")
    add("--clip", type=float, default=1.0)
    add("--profile", action="store_true", help="three more updates of each engine: the kernels that take longest")
    add("--json", metavar="FILE", help="everything, and the loss of every update")
    add("--device", default="cuda")
    return parser.parse_args()


# ------------------------------------------------------------------------------------------------- the tokens
def drawn(a, step):
    """Tokens of one update: rank r with probability near 1 / (r + 1), shifted by the rank before it."""
    generator = torch.Generator().manual_seed(step)
    u = torch.rand(a.batch, a.length, generator=generator, dtype=torch.float64)
    rank = (a.vocabulary**u).long() - 1
    before = rank.roll(1, dims=1) % 64
    return (rank + 7 * before) % a.vocabulary


def stored(file, most=None):
    import numpy

    windows = numpy.load(file, mmap_mode="r")
    if windows.ndim != 3 or windows.dtype.kind not in "iu":
        raise SystemExit(f"{file} holds {windows.dtype} {list(windows.shape)}, not integers [updates, batch, length]")
    return [torch.from_numpy(window.astype("int64")) for window in windows[:most]]


# ------------------------------------------------------------------------------------------------ the training
def build(a):
    import fla.models
    import transformers

    torch.manual_seed(0)
    if a.weights:
        model = transformers.AutoModelForCausalLM.from_pretrained(a.weights, dtype=torch.float32).to(a.device)
    else:
        config = fla.models.DeltaNetConfig(
            hidden_size=a.width, num_hidden_layers=a.layers, num_heads=a.width // 128 or 1, vocab_size=a.vocabulary,
            allow_neg_eigval=True)
        with torch.device(a.device):
            model = fla.models.DeltaNetForCausalLM(config)
    assert all(p.dtype == torch.float32 for p in model.parameters())
    model.config.use_cache = False
    return model.train()


def adamw(a, model):
    decayed, others = [], []
    for name, p in model.named_parameters():
        alone = a.decay == "matrices" and (p.dim() < 2 or name == "model.embeddings.weight")
        (others if alone else decayed).append(p)
    groups = [{"params": decayed}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=a.lr, betas=tuple(a.betas), eps=a.eps,
                             weight_decay=a.weight_decay, fused=True)


def learning_rate(a, step):
    if step < a.warmup:
        return a.lr * step / a.warmup
    if a.schedule == "constant":
        return a.lr
    end, low = a.horizon or a.steps, a.lr_floor * a.lr
    if step >= end:
        return low
    return low + 0.5 * (1 + math.cos(math.pi * (step - a.warmup) / (end - a.warmup))) * (a.lr - low)


def loss_of(a, model, tokens):
    with torch.autocast(torch.device(a.device).type, torch.bfloat16):
        return model(input_ids=tokens, labels=tokens).loss


def update(a, model, optimizer, tokens, step):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(a, step)
    loss = loss_of(a, model, tokens)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), a.clip)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def profile(a, model, optimizer, tokens, engine):
    """Milliseconds of an update by kernel."""
    from torch.profiler import ProfilerActivity

    kinds = [ProfilerActivity.CUDA] if a.device != "cpu" else [ProfilerActivity.CPU]
    with torch.profiler.profile(activities=kinds) as seen:
        for _ in range(3):
            update(a, model, optimizer, tokens, a.steps)
        if a.device != "cpu":
            torch.cuda.synchronize()
    took = [(e.self_device_time_total if a.device != "cpu" else e.self_cpu_time_total, e.count, e.key) for e in seen.key_averages()]
    took.sort(reverse=True)
    kernels = [{"ms": round(us / 3e3, 2), "calls": count // 3, "kernel": key[:90]} for us, count, key in took[:40]]
    print(json.dumps({"profile": engine, "ms": round(sum(us for us, _, _ in took) / 3e3, 1), "kernels": kernels[:12]}), flush=True)
    return kernels


def train(a, engine, batches, held_out):
    import lrnn

    lrnn.fla.disable()
    if engine != "fla":
        lrnn.fla.enable(accuracy="fast" if engine == "lrnn-fast" else None)
    on_gpu = a.device != "cpu"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    model = build(a)
    optimizer = adamw(a, model)
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    wait()
    begin = time.perf_counter()
    losses, blocks, first = [], [], None
    for step, tokens in enumerate(batches):
        if step % BLOCK == 0:
            wait()
            start = time.perf_counter()
        losses.append(update(a, model, optimizer, tokens, step))
        if step == 0:
            wait()
            first = time.perf_counter() - begin
        if step % BLOCK == BLOCK - 1 or step == len(batches) - 1:
            wait()
            blocks.append((time.perf_counter() - start) / (step % BLOCK + 1))
    step = statistics.median(blocks[len(blocks) // 2 :])
    run = {
        "engine": engine, "parameters": sum(p.numel() for p in model.parameters()), "updates": len(losses),
        "tokens_per_s": batches[0].numel() / step, "step_ms": 1e3 * step, "first_update_s": first,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if on_gpu else None}
    run["losses"] = torch.stack(losses).tolist()
    if held_out:
        model.eval()
        with torch.no_grad():
            run["eval_loss"] = torch.stack([loss_of(a, model, tokens) for tokens in held_out]).mean().item()
        model.train()
    shown = {k: v for k, v in run.items() if k != "losses"} | {"loss_first": run["losses"][0], "loss_last": run["losses"][-1]}
    print(json.dumps(shown), flush=True)
    if a.profile:
        run["profile"] = profile(a, model, optimizer, batches[-1], engine)
    lrnn.fla.disable()
    return run


def compared(runs):
    """Each engine beside fla."""
    out = {}
    for engine, run in runs.items():
        if engine == "fla" or "fla" not in runs:
            continue
        off = [abs(x - y) for x, y in zip(runs["fla"]["losses"], run["losses"])]
        late = off[len(off) // 2 :]
        out[engine] = {
            "speedup": run["tokens_per_s"] / runs["fla"]["tokens_per_s"], "difference_mean": sum(off) / len(off),
            "difference_most": max(off), "difference_mean_second_half": sum(late) / len(late)}
        if "eval_loss" in run:
            out[engine]["difference_eval"] = abs(run["eval_loss"] - runs["fla"]["eval_loss"])
    return out


def main():
    a = arguments()
    batches = stored(a.tokens, a.steps) if a.tokens else [drawn(a, step) for step in range(a.steps)]
    a.steps = len(batches)
    batches = [tokens.to(a.device) for tokens in batches]
    held_out = [tokens.to(a.device) for tokens in stored(a.eval)] if a.eval else []
    result = {"settings": vars(a), "runs": {}, "compared": {}}
    for engine in a.engines:
        result["runs"][engine] = train(a, engine, batches, held_out)
        gc.collect()  # the model before
        if a.device != "cpu":
            torch.cuda.empty_cache()
        result["compared"] = compared(result["runs"])
        if a.json:  # after every engine: what is done is not lost
            with open(a.json, "w") as file:
                json.dump(result, file)
    if result["compared"]:
        print(json.dumps(result["compared"]))


if __name__ == "__main__":
    main()
