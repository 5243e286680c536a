#!/usr/bin/env python3
"""Trains a zoo of small models, one per task and mixer, and goes back: the automaton that each follows, that
automaton as weights, and their proof. Writes results/extract.jsonl, a line per model, from which scripts/tables.py
makes the table of docs/extract.md.

  scripts/zoo.py                  all of them, on one thread each; half an hour
  scripts/zoo.py parity_gla s3    these alone; their lines are replaced
  scripts/zoo.py --keep DIR       leave the runs there, and use those that are there already

LRNN names the program (default: build/lrnn)."""
import argparse
import datetime
import json
import os
import platform
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LRNN = os.environ.get("LRNN", str(ROOT / "build/lrnn"))
RESULT = ROOT / "results/extract.jsonl"


def delta(householders=1, **more):
    return {"name": "delta_product", "heads": 4, "key_dim": 8, "value_dim": 8, "householders": householders,
            "range": [-1, 1], "conv": 0, "qk_activation": "none", **more}


def automaton(length=40, **named):
    return {"name": "automaton", **named, "train": {"length": [1, length]}, "eval": {"length": 128, "samples": 64}}


def task(name, length=(3, 40), **more):
    return {"name": name, **more, "train": {"length": list(length), **more.pop("train", {})},
            "eval": {"length": 128, "samples": 64}}


EACH_BIT = {"name": "parity", "train": {"length": [3, 40], "targets": "all"}, "eval": {"length": 128, "samples": 64}}
# name: task, mixer, and what differs from the settings below.
ZOO = {
    "parity": (EACH_BIT, delta(), {}),
    "parity_delta_net": (EACH_BIT, {"name": "delta_net", "heads": 4, "key_dim": 8, "range": [-1, 1], "conv": 0}, {}),
    "parity_mamba": (EACH_BIT, {"name": "mamba", "range": [-1, 1]}, {}),
    "parity_gla": (EACH_BIT, {"name": "gla", "heads": 4, "range": [-1, 1]}, {}),
    "parity_rwkv7": (EACH_BIT, {"name": "rwkv7", "heads": 4, "range": [0, 2]}, {}),
    "parity_slstm": (EACH_BIT, {"name": "slstm", "heads": 4}, {}),
    "parity_mlstm": (EACH_BIT, {"name": "mlstm", "heads": 4}, {}),
    "parity_attention": (EACH_BIT, {"name": "attention", "heads": 4}, {}),
    "parity_diagonal": (EACH_BIT, {"name": "diagonal", "range": [-1, 1]}, {}),
    "even_pairs": (task("even_pairs"), delta(), {}),
    "cycle_navigation": (task("cycle_navigation", (2, 30), cycle=5), delta(2), {}),
    "cups": ({"name": "cups", "train": {"length": [1, 20], "targets": "all"}, "eval": {"length": 64, "samples": 64}},
             delta(2), {}),
    "modular_addition": (task("modular_addition", (1, 40), modulus=5), delta(2), {}),
    "s3": (task("group", (1, 40), group="S3"), delta(2), {}),
    "s3_swaps": (automaton(group="S3", letters="swaps"), delta(1), {}),
    "s4_generators": (automaton(group="S4", letters="generators"), delta(3), {"steps": 1500}),
    "a5_generators": (automaton(24, group="A5", letters="generators"), delta(4, key_dim=16, value_dim=16),
                      {"steps": 3000, "width": 64, "hidden": 128}),
    "tomita3": (automaton(example="tomita3"), delta(2), {}),
    "tomita4": (automaton(example="tomita4"), delta(), {}),
    "tomita5": (automaton(example="tomita5"), delta(), {}),
    "tomita6": (automaton(example="tomita6"), delta(2), {}),
    "mod3_reset": (automaton(example="mod3_reset"), delta(2), {}),
    "flip_flop": (automaton(example="flip_flop"), delta(), {}),
    "contains_aba": (automaton(example="contains_aba"), delta(), {}),
    "ends_with_aba": (automaton(example="ends_with_aba"), delta(conv=4), {}),
    "third_from_end": (automaton(example="third_from_end"), delta(conv=4), {}),
    "dyck1_3": (automaton(example="dyck1_3"), delta(), {}),
    "s5_points": (automaton(example="s5_points"), delta(4), {}),
}


def config(name):
    what, mixer, other = ZOO[name]
    width = other.get("width", 32)
    return {
        "seed": 1,
        "task": what,
        "model": {"width": width, "layers": 2, "mixer": mixer, "mlp": {"name": "swiglu", "hidden": other.get("hidden", width)},
                  "init": {"scheme": "chomsky", "gain": 6.0}},
        "train": {"steps": other.get("steps", 600), "batch": 32, "lr": 5e-3, "warmup": 40, "weight_decay": 0.0, "clip": 1.0,
                  "threads": 1, "eval_every": 0, "checkpoint_every": 0},
    }


def lrnn(*words, answers=(0,)):
    done = subprocess.run([LRNN, *map(str, words), "--json"], capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode not in answers:
        raise SystemExit(f"lrnn {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def go_back(name, folder):
    """One line of the table: the automaton that the trained model follows, and that automaton proved."""
    run = folder / name
    if not (run / "result.json").exists():
        file = folder / f"{name}.yaml"
        file.write_text(json.dumps(config(name)))
        lrnn("train", file, "--out", run, "--overwrite", "--quiet")
    found = lrnn("extract", run, "-o", folder / f"{name}.json", "--seconds", 120, answers=(0, 1))
    proved = None
    if found["agreed"]:
        with tempfile.TemporaryDirectory() as made:
            lrnn("compile", "--automaton", folder / f"{name}.json", "-o", f"{made}/exact")
            proof = lrnn("verify", f"{made}/exact", "--tokens", 10000, answers=(0, 1))
            proved = proof["right"] and proof["certificate"]["all_lengths"]
    rows = found["agreement"]
    usual = ZOO[name][0]["train"]["length"][1]
    within = [row for row in rows if row["length"] <= usual]
    return {
        "name": name, "task": ZOO[name][0].get("example") or ZOO[name][0].get("group") or ZOO[name][0]["name"],
        "mixer": ZOO[name][1]["name"], "householders": ZOO[name][1].get("householders"), "trained_to": usual,
        "states": found["states"], "true_states": found["task"]["states"], "same": found["task"]["same"],
        "agreed": found["agreed"], "ended": found["ended"], "longest": found["longest"], "asked": found["asked"],
        "within": [sum(row["equal"] for row in within), sum(row["words"] for row in within)],
        "last": rows[-1] if rows else None, "first_difference": found["first_difference"],
        "seconds": round(found["seconds"], 1), "proved": proved,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="which ones (default: all)")
    parser.add_argument("--keep", type=Path, help="a folder for the runs")
    given = parser.parse_args()
    if unknown := set(given.names) - set(ZOO):
        raise SystemExit(f"zoo.py: there is no {', '.join(sorted(unknown))}; there are {', '.join(ZOO)}")
    old = [json.loads(line) for line in RESULT.read_text().splitlines()[1:]] if RESULT.exists() else []
    lines = {line["name"]: line for line in old}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    first = {"machine": f"{os.cpu_count()} cores, {platform.machine()}, one thread", "commit": commit,
             "date": datetime.date.today().isoformat(), "command": "scripts/zoo.py"}
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name in given.names or ZOO:
            lines[name] = go_back(name, folder)
            print(json.dumps(lines[name]), flush=True)
            RESULT.write_text("\n".join(json.dumps(x) for x in [first, *(lines[n] for n in ZOO if n in lines)]) + "\n")


if __name__ == "__main__":
    main()
