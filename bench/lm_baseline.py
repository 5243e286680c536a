#!/usr/bin/env python3
"""The loss curve of `lrnn train` beside that of plain PyTorch, update by update: the same initial weights, the
same windows, AdamW, clipping and schedule. One JSON line.

  PYTHONPATH=build/python bench/lm_baseline.py                     a DeltaNet of 2M on the plays, float32, CPU, 100 updates
  bench/lm_baseline.py --prepare FOLDER CONFIG KEYS… --device cuda       weights, windows and lrnn's own curve, for fla
  bench/lm_baseline.py --compare FOLDER                                  of that curve with FOLDER/fla.json (bench/fla_training.py)

The plain model is written down below from its formulas: a loop over tokens, nothing of lrnn's.
"""
import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess

import numpy as np

# Of the plays, without forget gate: fla's DeltaNet, with the papers' learning rate. (At ten times as much, batches of 4 and
# length 128 the curves agreed for the updates that were looked at, six, and were up to .08 apart within 100.) The warm-up begins with a rate of 0, so that after one update
# the weights are still the initial ones.
SMALL = ["configs/lm/plays.yaml", "model.width=192", "model.layers=4", "model.mixer.heads=3", "model.mlp.hidden=512",
         "model.mixer.forget_gate=false", "task.train.length=64", "task.eval.length=64", "train.steps=100", "train.lr=3e-4",
         "train.warmup=20", "train.batch=8", "train.eval_every=0"]


def lrnn(*words):
    return subprocess.run([os.environ.get("LRNN", "build/lrnn"), *map(str, words)], check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def windows_of(config, split, batches, batch):
    """Token windows as training draws them: [batches, batch, length]."""
    task = config["task"]
    keys = [f"data={json.dumps(task['data'])}", *(f"{s}.length={task[s]['length'][0]}" for s in ("train", "eval"))]
    lines = lrnn("tasks", "show", "text", *keys, "--split", split, "--seed", config["seed"], "--count", batches * batch,
                 "--json").splitlines()
    return np.array([json.loads(line)["input"] for line in lines], np.int32).reshape(batches, batch, -1)


def prepare(folder, words, device):
    """FOLDER/weights, windows.npy, eval.npy, options and lrnn's own run."""
    os.makedirs(folder, exist_ok=True)
    config = json.loads(lrnn("show", *words, "--json"))["config"]
    t = config["train"]
    if t["warmup"] < 1:
        raise SystemExit("train.warmup must be at least 1: the first update, with a rate of 0, leaves the initial weights")
    on = ["--quiet", "--overwrite", "--device", device]
    first = folder + "/first"
    shutil.rmtree(folder + "/weights", ignore_errors=True)
    lrnn("train", *words, "train.steps=1", "task.eval.samples=1", "--out", first, *on)
    lrnn("export", first, "-o", folder + "/weights", "--dtype", "float32")
    shutil.rmtree(first)
    np.save(folder + "/windows.npy", windows_of(config, "train", t["steps"], t["batch"]))
    samples = config["task"]["eval"]["samples"] // t["batch"] * t["batch"]
    np.save(folder + "/eval.npy", windows_of(config, "eval", samples // t["batch"], t["batch"]))
    with open(folder + "/options", "w") as f:
        f.write(f"--lr {t['lr']} --warmup {t['warmup']} --schedule {t['schedule']} --lr-floor {t['lr_floor']} "
                f"--weight-decay {t['weight_decay']} --betas {t['betas'][0]} {t['betas'][1]} --eps {t['eps']} "
                f"--clip {t['clip']} --decay {config['model']['decay']}\n")
    run = folder + "/lrnn"
    lrnn("train", *words, "train.log_every=1", f"task.eval.samples={samples}", "--out", run, *on)
    return config


def own_curve(folder):
    with open(folder + "/lrnn/metrics.jsonl") as f:
        lines = [json.loads(line) for line in f]
    return {"losses": [x["loss"] for x in lines if x["kind"] == "train"],
            "eval_loss": [x["loss"] for x in lines if x["kind"] == "eval"][-1]}


def difference(ours, theirs, begin=0):
    gaps = [abs(a - b) for a, b in zip(ours["losses"], theirs["losses"])]
    assert len(gaps) == len(ours["losses"]) == len(theirs["losses"]), "not as many updates"
    out = {"updates": len(gaps), "first_loss": ours["losses"][0], "last_loss": ours["losses"][-1],
           "largest_difference": max(gaps), "first_differences": gaps[:3], "last_differences": gaps[-3:], "mean_difference": statistics.mean(gaps[begin:]), "mean_from_update": begin}
    if theirs.get("eval_loss") is not None:
        out.update(eval_loss=ours["eval_loss"], eval_difference=abs(ours["eval_loss"] - theirs["eval_loss"]))
    return out


# ------------------------------------------------------------------------------------------- plain PyTorch

def plain(folder, t):
    """A DeltaNet (Schlag et al. 2021, Yang et al. 2024; beta in (0, 2) as Grazzi et al. 2025), and its training."""
    import torch
    import torch.nn.functional as F
    from safetensors.torch import load_file

    with open(folder + "/weights/config.json") as f:
        c = json.load(f)
    w = {name: x.float().requires_grad_() for name, x in load_file(folder + "/weights/model.safetensors").items()}
    heads, eps = c["num_heads"], c["norm_eps"]

    def norm(x, weight):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight

    def unit(x):
        return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)

    def convolved(x, weight):
        y = F.conv1d(x.mT, weight, padding=weight.size(-1) - 1, groups=weight.size(0))[..., :x.size(1)].mT
        return F.silu(y)

    def delta_rule(q, k, v, beta):
        """S <- S + beta k (v - S^T k)^T,  o = S^T q / sqrt(K)"""
        S = q.new_zeros(*q.shape[:1], *q.shape[2:], v.size(-1))
        out = []
        for s in range(q.size(1)):
            error = v[:, s] - torch.einsum("bhkv,bhk->bhv", S, k[:, s])
            S = S + torch.einsum("bhk,bhv->bhkv", beta[:, s, :, None] * k[:, s], error)
            out.append(torch.einsum("bhkv,bhk->bhv", S, q[:, s]))
        return torch.stack(out, 1) / q.size(-1) ** 0.5

    def mixer(x, p):
        q, k, v = (convolved(F.linear(x, w[f"{p}.{a}_proj.weight"]), w[f"{p}.{a}_conv1d.weight"]).unflatten(-1, (heads, -1))
                   for a in "qkv")
        beta = (2 if c["allow_neg_eigval"] else 1) * F.linear(x, w[p + ".b_proj.weight"]).sigmoid()
        o = delta_rule(unit(q), unit(k), v, beta)
        return F.linear(norm(o, w[p + ".o_norm.weight"]).flatten(-2), w[p + ".o_proj.weight"])

    def mlp(x, p):
        return F.linear(F.silu(F.linear(x, w[p + ".gate_proj.weight"])) * F.linear(x, w[p + ".up_proj.weight"]),
                        w[p + ".down_proj.weight"])

    table = w["model.embeddings.weight"]

    def loss_of(tokens):
        x = F.embedding(tokens, table)
        for i in range(c["num_hidden_layers"]):
            p = f"model.layers.{i}"
            x = x + mixer(norm(x, w[p + ".attn_norm.weight"]), p + ".attn")
            x = x + mlp(norm(x, w[p + ".mlp_norm.weight"]), p + ".mlp")
        logits = F.linear(norm(x, w["model.norm.weight"]), w.get("lm_head.weight", table))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    def decays(name):  # model.decay: matrices
        return w[name].dim() > 1 and name != "model.embeddings.weight"

    groups = [{"params": [w[name] for name in w if decays(name) == on], "weight_decay": t["weight_decay"] * on}
              for on in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=0, betas=t["betas"], eps=t["eps"])
    losses = []
    for step, batch in enumerate(np.load(folder + "/windows.npy")):
        loss = loss_of(torch.from_numpy(batch).long())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(w.values(), t["clip"])
        for group in optimizer.param_groups:
            group["lr"] = rate(t, step)
        optimizer.step(), optimizer.zero_grad()
        losses.append(loss.item())
    with torch.no_grad():
        each = [loss_of(torch.from_numpy(batch).long()).item() for batch in np.load(folder + "/eval.npy")]
    return {"losses": losses, "eval_loss": statistics.mean(each)}


def rate(t, step):
    if step < t["warmup"]:
        return t["lr"] * step / t["warmup"]
    low = t["lr_floor"] * t["lr"]
    done = (step - t["warmup"]) / (t["steps"] - t["warmup"])
    return t["lr"] if t["schedule"] == "constant" else low + (1 + np.cos(np.pi * done)) / 2 * (t["lr"] - low)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="*", help="of lrnn train, with keys; default: the plays, 2M")
    parser.add_argument("--prepare", metavar="FOLDER", help="write what another trainer needs, and lrnn's own curve")
    parser.add_argument("--compare", metavar="FOLDER", help="what --prepare left there with FOLDER/fla.json")
    parser.add_argument("--device", default="cpu")
    a = parser.parse_args()
    if a.prepare:
        prepare(a.prepare, a.config, a.device)
        ours = own_curve(a.prepare)
        print(json.dumps({"bench": "curve", "who": "lrnn", "updates": len(ours["losses"]), "first_loss": ours["losses"][0],
                          "last_loss": ours["losses"][-1], "eval_loss": ours["eval_loss"]}))
        return
    if a.compare:
        with open(a.compare + "/fla.json") as f:
            runs = json.load(f)["runs"]
        ours = own_curve(a.compare)
        for who, run in runs.items():
            print(json.dumps({"bench": "curve", "against": who, **difference(ours, run, min(100, len(run["losses"]) // 2))}))
        return
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        config = prepare(folder, a.config or SMALL, "cpu")
        line = difference(own_curve(folder), plain(folder, config["train"]))
        print(json.dumps({"bench": "curve", "against": "plain PyTorch, float32", "command": shlex.join(a.config or SMALL), **line}))


if __name__ == "__main__":
    main()
