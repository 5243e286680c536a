#!/usr/bin/env python3
"""Training language models of the papers on one GPU, random weights and random tokens: from the start of
the process to its first update, tokens a second, peak memory; our loss op beside its three products; and
tokens a second of generating with 1 and with 256 sequences (`bench` is generate). One JSON line each.

  python3 bench/lm.py [--only 340M] [--updates 20] [--peer] [--build build] [-- MORE]
  python3 bench/lm.py --generate     that alone: BUILD/generate_gpu_bench, to which MORE goes (--parts)
  python3 bench/lm.py --install      fla and what it needs, into .peers (never committed)

Ours is BUILD/lm_gpu_bench, a process for each model; MORE goes to it (--accuracy fast, --recompute block,
--accumulate 4, --eager). With --peer fla's own model of the same sizes is trained in the same call as its
users do: float32 weights, bfloat16 by autocast, fused AdamW, clipping. `who` tells them apart, `ratio` is
our tokens a second over theirs. Theirs are given as `peak_gib` what torch calls max_memory_allocated.
"""
import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WITHOUT_DEPENDENCIES = ["flash-linear-attention", "fla-core"]  # none of theirs may replace torch
OTHERS = ["einops", "transformers", "datasets"]
VOCABULARY = 32000
# As in lm_gpu_bench.cpp.
MODELS = {
    "340M DeltaNet": dict(width=1024, heads=8, hidden=2816, batch=16, length=2048, tied=False),
    "1.3B DeltaNet": dict(width=2048, heads=16, hidden=5632, batch=8, length=2048, tied=False),
    "392M DeltaProduct3": dict(width=1024, heads=6, hidden=2816, batch=8, length=4096, tied=True, householders=3),
}
GENERATES = "340M DeltaNet"


def stop(message, hint):
    print(f"lm.py: {message}\n  {hint}", file=sys.stderr)
    sys.exit(2)


def install(folder):
    pip = [sys.executable, "-m", "pip", "install", "--upgrade", "--target", str(folder)]
    sys.exit(subprocess.call(pip + ["--no-deps"] + WITHOUT_DEPENDENCIES) or subprocess.call(pip + OTHERS))


def say(line):
    print(json.dumps(line), flush=True)
    return line


def ours(program, arguments):
    """The lines of one process, and how long it took from its start to the first update."""
    begin = time.time()
    process = subprocess.run([str(program), *arguments], stdout=subprocess.PIPE, text=True)
    lines = [json.loads(text) for text in process.stdout.splitlines() if text.startswith("{")]
    if process.returncode or not lines:
        say(dict(bench="lm", who="lrnn", failed=process.returncode, arguments=arguments, s=round(time.time() - begin, 1)))
    return [say(line) for line in lines]


def theirs(name, shape, updates):
    begin = time.time()
    import torch
    if not torch.cuda.is_available():
        stop("no GPU was found", "both sides need one")
    common = dict(
        hidden_size=shape["width"], num_hidden_layers=24, num_heads=shape["heads"], intermediate_size=shape["hidden"],
        vocab_size=VOCABULARY, tie_word_embeddings=shape["tied"], initializer_range=0.006, use_cache=False,
        max_position_embeddings=shape["length"])
    if "householders" in shape:
        from fla.models import GatedDeltaProductConfig as Config, GatedDeltaProductForCausalLM as Model
        common |= dict(head_dim=128, expand_v=1, num_householder=shape["householders"], use_forget_gate=False,
                       use_output_gate=False, allow_neg_eigval=True)
    else:
        from fla.models import DeltaNetConfig as Config, DeltaNetForCausalLM as Model
    torch.manual_seed(42)
    with torch.device("cuda"):
        model = Model(Config(**common))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
    torch.cuda.reset_peak_memory_stats()

    def update():
        tokens = torch.randint(VOCABULARY, (shape["batch"], shape["length"]), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    update().item()
    first = time.time() - begin
    for _ in range(3):
        update()
    torch.cuda.synchronize()
    at = time.time()
    for _ in range(updates):
        loss = update()
    loss = loss.item()
    s = (time.time() - at) / updates
    import importlib.metadata
    version = importlib.metadata.version("flash-linear-attention")
    say(dict(bench="lm", model=name, who=f"fla {version}", device=torch.cuda.get_device_name(),
             parameters=sum(p.numel() for p in model.parameters()), batch=shape["batch"], length=shape["length"],
             loss=loss, first_update_s=first, update_ms=1e3 * s, tokens_per_s=shape["batch"] * shape["length"] / s,
             peak_gib=torch.cuda.max_memory_allocated() / 2**30))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="install the peer with pip, then end")
    parser.add_argument("--peers", type=Path, default=ROOT / ".peers", help="where it is (.peers)")
    parser.add_argument("--peer", action="store_true", help="fla's models too")
    parser.add_argument("--theirs", help=argparse.SUPPRESS)  # one model of fla's, in a process of its own
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where our program is (build)")
    parser.add_argument("--only", default="", metavar="TEXT", help="models whose name holds TEXT")
    parser.add_argument("--generate", action="store_true", help="only generating")
    parser.add_argument("--updates", type=int, default=20, help="that are timed (20)")
    parser.add_argument("more", nargs="*", help="for our program, behind --")
    options = parser.parse_args()
    if options.install:
        install(options.peers)
    if options.theirs:
        sys.path.append(str(options.peers))
        theirs(options.theirs, MODELS[options.theirs], options.updates)
        return
    program, generator = options.build / "lm_gpu_bench", options.build / "generate_gpu_bench"
    for needed in (program, generator)[options.generate:]:
        if not needed.exists():
            stop(f"{needed} does not exist", "`ninja -C build benchmarks_gpu` where nvcc and a GPU are found")
    if options.generate:
        sys.exit(0 if ours(generator, ["--only", options.only or GENERATES, *options.more]) else 1)
    chosen = [name for name in MODELS if options.only in name]
    if not chosen:
        stop(f"no model is called {options.only}", "the models: " + ", ".join(MODELS))
    good = bool(ours(program, ["--loss"])) if not options.only else True
    if options.only in GENERATES:
        good = bool(ours(generator, ["--only", GENERATES])) and good
    for name in chosen:
        mine = ours(program, ["--only", name, "--updates", str(options.updates), *options.more])
        good = good and bool(mine)
        if not options.peer:
            continue
        process = subprocess.run(
            [sys.executable, __file__, "--theirs", name, "--peers", str(options.peers), "--updates", str(options.updates)],
            stdout=subprocess.PIPE, text=True)
        lines = [json.loads(text) for text in process.stdout.splitlines() if text.startswith("{")]
        if process.returncode or not lines:
            say(dict(bench="lm", model=name, who="fla", failed=process.returncode))
            continue
        say(lines[-1])
        if mine:
            say(dict(bench="lm ratio", model=name, who=[mine[-1]["who"], lines[-1]["who"]],
                     ratio=round(mine[-1]["tokens_per_s"] / lines[-1]["tokens_per_s"], 2),
                     peak_ratio=round(mine[-1]["peak_gib"] / lines[-1]["peak_gib"], 2)))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
