#!/usr/bin/env python3
"""fla's own model on fla's kernels and, after lrnn.fla.enable(), on lrnn's: tokens per second and loss curves,
from the same weights and tokens in one process. Two JSON lines per engine: the run, and how it compares with fla's.

  PYTHONPATH=build/python python3 bench/fla_training.py                   # the 340M DeltaNet, 200 updates of 16 x 2048
  ... --weights FOLDER --tokens windows.npy --eval held_out.npy --json F  # a model and windows of yours

Trained as fla's users do: float32 weights with bfloat16 autocast, clipping, fused AdamW. Without --weights it is
the papers' 340M DeltaNet (width 1024, 24 layers, 8 heads, range [-1,1]) with fla's initial weights; FOLDER is
what `lrnn export --dtype float32` writes. Without --tokens the text is drawn: a Zipf distribution that moves with
the token before, so there is something to learn at once. A file of tokens is [updates, batch, length]; of a
window's T tokens T-1 are targets. The learning rate follows src/training/schedule.cpp. flash-linear-attention and
transformers are those that can be imported.

Engines: fla; lrnn; lrnn-fast is lrnn with accuracy="fast"; fla-again is fla once more; fla-nudged is fla from weights
each of which is one unit in the last place off, up or down by chance. The last two say how far apart two curves lie
that nobody would call different: rounding alone moves them so far.
"""

import argparse
import gc
import json
import math
import os
import statistics
import subprocess
import time
import warnings

import torch

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")
BLOCK = 10  # updates between two looks at the clock: nobody waits for a GPU after every one


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--engines", nargs="+", choices=["lrnn", "lrnn-fast", "fla", "fla-again", "fla-nudged"], default=["lrnn", "fla"])
    add("--steps", type=int, default=200, help="updates of each engine")
    add("--weights", metavar="FOLDER", help="config.json and model.safetensors to begin with")
    add("--tokens", metavar="FILE", help=".npy, integers [updates, batch, length]")
    add("--eval", metavar="FILE", help=".npy, integers [batches, batch, length]: the loss on them at the end")
    add("--batch", type=int, default=16)
    add("--length", type=int, default=2048)
    add("--width", type=int, default=1024)
    add("--layers", type=int, default=24)
    add("--vocabulary", type=int, default=32000)
    add("--lowest", type=int, choices=[-1, 0], default=-1, help="eigenvalue: the range [-1,1] or [0,1]")
    add("--tied", action="store_true", help="the embedding is the head")
    add("--std", type=float, default=0.02, help="of the initial weights")
    add("--warm", type=int, default=0, help="updates of every engine before the first is timed, for what compiles and tunes itself")
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
            allow_neg_eigval=a.lowest < 0, tie_word_embeddings=a.tied, initializer_range=a.std)
        with torch.device(a.device):
            model = fla.models.DeltaNetForCausalLM(config)
    assert all(p.dtype == torch.float32 for p in model.parameters())
    model.config.use_cache = False
    return model.train()


def nudge(model):
    """Every weight to its neighbour in float32, above or below."""
    generator = torch.Generator(next(model.parameters()).device).manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            up = torch.rand(p.shape, generator=generator, device=p.device) < 0.5
            p.copy_(torch.nextafter(p, torch.where(up, math.inf, -math.inf)))


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


def others_on_the_gpu():
    """The processes on the GPU beside this one, as nvidia-smi knows them; None where it does not even know of this one."""
    try:
        said = subprocess.run(["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    known = said.stdout.split()
    return len(known) - 1 if said.returncode == 0 and known else None


def on_kernels_of(a, engine):
    """Model and optimizer, on the engine's kernels."""
    import lrnn

    lrnn.fla.disable()
    if engine.startswith("lrnn"):
        lrnn.fla.enable(accuracy="fast" if engine == "lrnn-fast" else None)
    model = build(a)
    if engine == "fla-nudged":
        nudge(model)
    return model, adamw(a, model)


def rest(a):
    """Forgets the model before."""
    gc.collect()
    if a.device != "cpu":
        torch.cuda.empty_cache()


def warm_up(a, batches):
    for engine in a.engines:
        if engine in ("fla-again", "fla-nudged") and "fla" in a.engines:
            continue
        begin = time.perf_counter()
        model, optimizer = on_kernels_of(a, engine)
        for step, tokens in enumerate(batches[: a.warm]):
            update(a, model, optimizer, tokens, step)
        if a.device != "cpu":
            torch.cuda.synchronize()
        print(json.dumps({"warm": engine, "updates": a.warm, "s": time.perf_counter() - begin}), flush=True)
        del model, optimizer
        rest(a)


def train(a, engine, batches, held_out):
    import lrnn

    on_gpu = a.device != "cpu"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    model, optimizer = on_kernels_of(a, engine)
    beside = others_on_the_gpu() if on_gpu else None
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
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if on_gpu else None, "others_on_the_gpu": [beside, others_on_the_gpu()] if on_gpu else None,
        "step_ms_by_10": [round(1e3 * block, 2) for block in blocks]}
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


def means(losses, size=10):
    """Of windows of updates: what batches add to single losses is less there."""
    return [sum(losses[i : i + size]) / size for i in range(0, len(losses) - size + 1, size)]


def apart(one, other):
    """How far two curves lie from each other: mean and largest |difference|, by update and by window."""
    off = [abs(x - y) for x, y in zip(one, other)]
    by_10 = [abs(x - y) for x, y in zip(means(one), means(other))]
    out = {"mean": sum(off) / len(off), "most": max(off)}
    if len(off) > 100:
        out["mean_of_the_first_100"] = sum(off[:100]) / 100
    if by_10:
        out |= {"mean_by_10": sum(by_10) / len(by_10), "most_by_10": max(by_10), "last_10": by_10[-1]}
    return out


def compared(runs):
    """Each engine beside fla, and beside the nudged one."""
    out = {}
    for engine, run in runs.items():
        if engine == "fla" or "fla" not in runs:
            continue
        theirs = runs["fla"]
        out[engine] = {"speedup": run["tokens_per_s"] / theirs["tokens_per_s"], "difference": apart(theirs["losses"], run["losses"])}
        if "fla-nudged" in runs and engine != "fla-nudged":
            out[engine]["difference_from_nudged"] = apart(runs["fla-nudged"]["losses"], run["losses"])
        if "eval_loss" in run:
            out[engine]["difference_eval"] = abs(run["eval_loss"] - theirs["eval_loss"])
    return out


def main():
    a = arguments()
    batches = stored(a.tokens, a.steps) if a.tokens else [drawn(a, step) for step in range(a.steps)]
    a.steps = len(batches)
    batches = [tokens.to(a.device) for tokens in batches]
    held_out = [tokens.to(a.device) for tokens in stored(a.eval)] if a.eval else []
    result = {"settings": vars(a), "runs": {}, "compared": {}}
    if a.warm:
        warm_up(a, batches)
    for engine in a.engines:
        result["runs"][engine] = train(a, engine, batches, held_out)
        rest(a)
        result["compared"] = compared(result["runs"])
        if engine in result["compared"]:
            print(json.dumps({engine: result["compared"][engine]}), flush=True)
        if a.json:  # after every engine: what is done is not lost
            with open(a.json, "w") as file:
                json.dump(result, file)


if __name__ == "__main__":
    main()
