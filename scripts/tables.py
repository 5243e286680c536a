#!/usr/bin/env python3
"""Fills the tables of the documents from the measurements under results/.

  scripts/tables.py            write them
  scripts/tables.py --check    say which document is out of date; exit code 1 if one is

A table stands in a document between the lines `<!-- table NAME -->` and `<!-- end -->`; what lies between
is made by the function of that name below. New measurements: `make bench-gpu` writes build/bench-delta_product.jsonl,
build/bench-gpu.jsonl and build/accuracy-gpu.jsonl, which go to results/bench/delta_product.jsonl, gpu.jsonl and
accuracy.jsonl as they are, `make bench-lm` build/bench-lm.jsonl, whose lines go to lm.jsonl; a set of runs of
`lrnn reproduce` goes to results/NAME.tar.gz and NAME.md, with a line in results/runs.jsonl.
"""
import json
import re
import statistics
import sys
from functools import partial

import lm_tables
import peer_tables
import steady_tables
from measurements import RESULTS, ROOT, cells, digits, in_archive, lines, power, score, source, spread, table

DOCUMENTS = ["README.md", "docs/performance.md", "docs/numerics.md", "docs/results.md", "docs/extract.md", "docs/lm.md",
             "docs/steady.md", "results/lm.md", "results/lm_213M.md"]
SHAPE = "BTNHKV"


# ------------------------------------------------------------------------------------- speed on a GPU
def shape(row):
    keys = f", {row['key_heads']} key heads" if "key_heads" in row else ""
    gate = " gated per channel" if row["gate"] == "channels" else " gated" if row["gate"] else ""
    return ",".join(str(row[x]) for x in SHAPE) + gate + keys


def alone():
    """Forward, forward and backward of other libraries, by shape and gate."""
    out = {}
    for row in lines("peers_alone.jsonl")[1]:
        if row.get("op") == "delta_product":
            out.setdefault(shape(row), []).append(f"{row['peer']}: {digits(row['ms'][0])} / {digits(row['ms'][1])}")
    return out


def delta_product():
    measured = [row for row in lines("delta_product.jsonl")[1] if row.get("op") == "delta_product" and "peak_mib" in row]
    sizes = list(dict.fromkeys(tuple(row[x] for x in "BTHKV") for row in measured))
    measured.sort(key=lambda row: (sizes.index(tuple(row[x] for x in "BTHKV")), row["N"], str(row["gate"]), row["dtype"]))
    rows = []
    for row in measured:
        dtype = " float32" if row["dtype"] == "fp32" else ""
        rows.append([shape(row) + dtype, row["precision"], digits(row["forward"]["ms"]), digits(row["both"]["ms"]),
                     f"{row['both']['of_floor']:.0%}", digits(row["peak_mib"])])
    return table(["B,T,N,H,K,V", "accuracy", "forward", "forward + backward", "of the floor", "MiB"],
                 rows) + ["", source("delta_product.jsonl")]


CHIPS = {90: "Hopper", 100: "Blackwell (B200)", 80: "A100", 86: "RTX 30 and 40"}


def other_chips():
    """The kernels that chips of other generations get, all timed on the same one."""
    rows = {}
    for row in lines("chips.jsonl")[1]:
        if "chip" in row and row["precision"] != "exact":
            case = rows.setdefault((shape(row), row["precision"]), {})
            case[row["chip"]] = f"{digits(row['forward']['ms'])} / {digits(row['both']['ms'])}"
    return table(["B,T,N,H,K,V", "accuracy", *CHIPS.values()],
                 [[*case, *[at[chip] for chip in CHIPS]] for case, at in rows.items()]) + ["", source("chips.jsonl")]


def long_sequences():
    rows = {}
    for row in lines("gpu.jsonl")[1]:
        if "constant" in row:
            forward = row["ns_per_token"][0]
            both = row["ns_per_token"][1] if len(row["ns_per_token"]) > 1 else None
            rows.setdefault(row["T"], {})[row["constant"], row["precision"]] = f"{digits(forward)} / {digits(both)}"
    columns = [("B T", "fast"), ("B T", "accurate"), ("B H", "fast"), ("B H", "accurate")]
    head = ["T", "a million tokens, 4 heads, `fast`", "`accurate`", "one sequence, 16 heads, `fast`", "`accurate`"]
    return table(head, [[f"{T:,}"] + [at.get(c, "–") for c in columns] for T, at in sorted(rows.items())]) + [
        "", source("gpu.jsonl")]


def language_models():
    """Ours as measured; fla's by the model, in a run of its own."""
    measured = lines("lm.jsonl")[1]
    theirs = {row["model"]: row for row in measured if row.get("who") == "fla" and row.get("bench") == "lm"}
    rows = []
    for row in measured:
        if row.get("bench") != "lm" or row["who"] != "lrnn" or "commit" in row:  # of an older build: for the estimate of memory
            continue
        fla = theirs.get(row["model"], {})
        settings = "`fast`" if row["accuracy"] == "fast" else "`accurate`"
        if row["recompute"] != "none":  # auto is cheap for a language model on a GPU
            settings += ", recompute " + row["recompute"].replace("auto", "cheap")
            if row.get("recompute_blocks"):
                settings += f" in {row['recompute_blocks']} blocks"
        if row["accumulate"] > 1:
            settings += f", {row['accumulate']} parts"
        rows.append([f"{row['model']}, {row['batch'] // row['accumulate']} × {row['length']:,}", settings,
                     f"{row['tokens_per_s'] / 1e3:.1f}k", f"{fla['tokens_per_s'] / 1e3:.1f}k" if fla else "–", f"{row['mfu']:.2f}",
                     f"{row['peak_gib']:.1f}", f"{fla['peak_gib']:.1f}" if fla else "–", f"{row['first_update_s']:.1f} s"])
    return table(["model, batch × length", "delta_product", "tokens/s", "fla", "MFU", "peak GiB", "fla", "first update after"],
                 rows) + ["", source("lm.jsonl")]


def ops():
    rows = []
    for row in lines("gpu.jsonl")[1]:
        if "backward_ms" in row:
            text = row["shape"].replace(" bf16", "").replace("fp32", "float32")
            rows.append([f"`{row['op']}`", text, digits(row["forward"]["ms"]), digits(row["backward_ms"]),
                         digits(row["peak_mib"])])
    return table(["op", "shape", "forward", "backward", "MiB"], rows) + ["", source("gpu.jsonl")]


def training():
    at = {}
    for row in lines("gpu.jsonl")[1]:
        if row.get("bench") == "step":
            at.setdefault(row["model"], {})[row["precision"]] = (digits(row["ms"]), str(row["kernels"]))
    none = ("–", "–")
    rows = [[model, *of.get("float32", none), *of.get("bfloat16", none)] for model, of in at.items()]
    return table(["an update of", "float32, ms", "kernels", "bfloat16, ms", "kernels"], rows) + ["", source("gpu.jsonl")]


def seeds():
    rows = [row for row in lines("gpu.jsonl")[1] if row.get("bench") == "seeds"]
    return table(["runs at once", *[str(row["seeds"]) for row in rows]],
                 [["ms until each has made an update", *[digits(row["ms_of_all"]) for row in rows]],
                  ["ms an update", *[digits(row["ms_of_one"]) for row in rows]]]) + ["", source("gpu.jsonl")]


def decoding():
    at = {}
    for row in lines("gpu.jsonl")[1]:
        if row.get("bench") == "decoding":
            name = "one token of " + ("one sequence" if row["sequences"] == 1 else f"{row['sequences']} sequences")
            at.setdefault(name, {})[row["recorded"]] = f"{row['us'] / 1000:.3f}"
        elif row.get("bench") == "evaluation":
            at.setdefault("evaluation of parity, 8192 words", {})[row["recorded"]] = digits(row["ms"])
    rows = [[name, of[False], of[True]] for name, of in at.items()]
    return table(["", "kernel by kernel, ms", "recorded, ms"], rows) + ["", source("gpu.jsonl")]


def peers():
    rows = []
    for row in lines("peers.jsonl")[1]:
        ratio = [f"{theirs / ours:.1f}×" if theirs else "–" for ours, theirs in zip(row["ours"], row["fla"])]
        rows.append([shape(row), row["precision"], *[f"{digits(row['ours'][i])}, {digits(row['fla'][i])}" for i in (0, 1)],
                     " / ".join(ratio), f"{row['mib'][0]}, {row['mib'][1] or '–'}", f"{row['error'][0]}, {row['error'][1]}"])
    return table(["B,T,N,H,K,V", "ours is", "forward: ours, fla", "with backward: ours, fla", "ratios", "MiB: ours, fla",
                  "error: ours, fla"], rows) + ["", source("peers.jsonl")]


def peers_alone():
    rows = [[at, text.split(": ")[0], text.split(": ")[1]] for at, texts in alone().items() for text in texts]
    return table(["B,T,N,H,K,V", "library", "forward / forward + backward"], rows) + ["", source("peers_alone.jsonl")]


# ------------------------------------------------------------------------------------- speed on a CPU
def cpu(what):
    return [row for row in lines("cpu.jsonl")[1] if row["what"] == what]


def cpu_steps():
    rows = [[row["case"], *[f"{row[x]:.4g}" for x in ("lrnn_ms", "loop_ms", "chunk_ms")], "×, ".join(map(str, row["ratios"])) + "×"]
            for row in cpu("step")]
    return table(["a training step of", "lrnn, ms", "PyTorch, a loop over tokens", "PyTorch, one chunk", "ratios"],
                 rows) + ["", source("cpu.jsonl", cpu("step"))]


def cpu_ops():
    rows = [[row["case"], f"{row['forward']}×", f"{row['both']}×"] for row in cpu("op")]
    return table(["op", "forward", "with backward"], rows) + ["", source("cpu.jsonl", cpu("op"))]


def cpu_length():
    rows = cpu("length")
    return table(["T", *[f"{row['T']:,}" for row in rows]],
                 [["forward, us a token", *[row["forward_us"] for row in rows]],
                  ["with backward", *[row["both_us"] for row in rows]]]) + ["", source("cpu.jsonl", rows)]


# ------------------------------------------------------------------------------------------ accuracy
def accuracy():
    """The largest relative error over head sizes and values, at beta = 2."""
    worst = {}
    for row in lines("accuracy.jsonl")[1]:
        at = worst.setdefault((row["keys"], row["T"]), {})
        for name in ("S", "dS0", "dq", "dk", "dv", "dbeta"):
            key = (row["precision"], row["beta"], name)
            at[key] = max(at.get(key, 0.0), float(row[name]))
    fla = {(row["keys"], row["T"]): row["error"] for row in lines("peers_alone.jsonl")[1] if "error" in row}
    rows = []
    for (keys, T), at in worst.items():
        gradients = max(("dS0", "dq", "dk", "dv", "dbeta"), key=lambda name: at["accurate", 2.0, name])
        rows.append([keys, T, f"{fla[keys, T]:.1e}".replace("e-0", "e-") if fla[keys, T] < 10 else fla[keys, T],
                     power(at["fast", 2.0, "S"]), power(at["accurate", 2.0, "S"]), power(at["exact", 2.0, "S"]),
                     f"{at['accurate', 2.0, gradients]:.1e} ({gradients})".replace("e-0", "e-"),
                     power(at["fast", 1.0, "S"]), power(at["accurate", 1.0, "S"])])
    return table(["keys", "T", "fla", "`fast`", "`accurate`", "`exact`", "`accurate`, worst gradient", "beta = 1: `fast`",
                  "`accurate`"], rows) + ["", source("accuracy.jsonl")]


# ------------------------------------------------------------------------------------ published tables
def by_seed(cell):
    return ", ".join(score(run["score"]) for run in cell["runs"] if run["done"])


def chosen(cell):
    """By the validation set; sets of runs from before there was one say so."""
    of = cell.get("chosen")
    if of is None or of["best"] is None:
        return "no validation"
    return f"{of['best']:.3f}, {spread(of)}" if cell["seeds"] > 1 else score(of["best"])


def highest(cell):
    """The largest evaluation on the way, over seeds: chosen on the test itself. Where the evaluations counted
    something else than the table, or there was one only, there is none."""
    curves = [run["training"] for run in cell["runs"] if run["done"]]
    alike = all(curve and abs(curve[-1][1] - run["score"]) < 1e-6
                for curve, run in zip(curves, [run for run in cell["runs"] if run["done"]]))
    return score(max(x for curve in curves for _, x in curve)) if alike and max(map(len, curves)) > 1 else "–"


def of_seeds(cell, of):
    return spread(of) if cell["seeds"] > 1 else score(of["median"])


PAPER = ["task", "model", "published best", "median ± MAD", "last step best", "median ± MAD", "chosen on validation",
         "highest on the test", "seeds"]


def paper_row(cell):
    published = cell["published_in_words"] if cell["published"]["best"] is None else score(cell["published"]["best"])
    return [cell["task"], cell["model"], published, spread(cell["published"]), score(cell["ours"]["best"]),
            of_seeds(cell, cell["ours"]), chosen(cell), highest(cell), cell["seeds"]]


def grazzi():
    found = {cell["model"]: cell for _, cell in cells("parity", "parity_mlstm")}
    rows = [paper_row(found[model]) for model in PARITY]
    rows += [paper_row(cell) for _, cell in cells("arithmetic_one_seed", "arithmetic", "brackets")]
    return table(PAPER, rows)


def siems():
    return table(PAPER, [paper_row(cell) for _, cell in cells("formal_parity", "formal", "groups", "layers")])


PARITY = ["Transformer", "mLSTM", "sLSTM", "Mamba [0,1]", "Mamba [-1,1]", "DeltaNet [0,1]", "DeltaNet [-1,1]"]


def parity_variants():
    names = {"parity": "as in the table", "parity_float32": "float32 throughout",
             "parity_six_seeds": "step sizes rounded to bfloat16, as published", "parity_lr_grid": "the best of four rates, 0.01"}
    rows = [[names[folder], cell["model"], score(cell["ours"]["best"]), spread(cell["ours"]), by_seed(cell), f"`{folder}`"]
            for folder, cell in cells(*names) if cell["model"].startswith("DeltaNet")]
    return table(["what differs", "model", "best", "median ± MAD", "seeds", "folder"], rows)


def lower():
    """What is below the published number by more than the spreads, and what was solved there and not here."""
    rows = []
    for folder, cell in cells("parity", "formal_parity", "formal", "arithmetic", "arithmetic_one_seed", "groups", "layers"):
        ours, theirs = cell["ours"], cell["published"]
        if cell["remark"].startswith("lower"):
            which = "median" if theirs["median"] is not None else "best"
            compared = which if cell["seeds"] > 1 else f"one seed, {which}"
            rows.append([cell["task"], cell["model"], f"{score(ours[which])}", f"{score(theirs[which])}", compared])
        elif cell["published_in_words"] == "solved" and ours["best"] < 0.99:
            rows.append([f"words of {cell['task']}", cell["model"], score(ours["best"]), "solved", "one seed, a 48th of the training"])
    return table(["task", "model", "ours", "published", "compared"], rows)


def half_right(run):
    """The longest prefix that half of the words have right."""
    return max((int(length) for length, share in run["lengths"] if share >= 0.5), default=0)


def groups():
    """Ours with the length that half of the words reach, and the update a run ended at if it ended early."""
    rows = {}
    for _, cell in cells("groups"):
        run = cell["runs"][0]
        step = int(run["training"][-1][0])
        half = "all" if half_right(run) >= run["lengths"][-1][0] else half_right(run)
        ours = f"{score(run['score'])} ({half})" + (f" after {step:,}" if step < 16000 else "")
        at = rows.setdefault(cell["task"], ([], []))
        at[0].append(ours)
        at[1].append(cell["published_in_words"] or score(cell["published"]["best"]))
    out = []
    for name, (ours, published) in rows.items():
        out += [[name, "ours", *ours], ["", "published", *published]]
    return table(["words of", "", "n_h = 1", "2", "3", "4"], out)


def runs():
    rows, commands = [], []
    for line in (RESULTS / "runs.jsonl").read_text().splitlines():
        run = json.loads(line)
        infos = in_archive(run["folder"], r"[^/]+/[^/]+/info\.json")
        machine = statistics.mode(info.get("gpu") or info["cpu"] for info in infos)
        rows.append([f"`{run['folder']}`", len(infos), min(info["started"] for info in infos)[:10], machine,
                     run["commit"], f"{run['wall_s']} s"])
        commands += [f"# {run['folder']}", run["command"]]
    return table(["folder", "runs", "date", "machine", "added in", "wall time"], rows) + ["", "```", *commands, "```"]


# -------------------------------------------------------------------------------------------- README
def headline():
    """One row per claim: ours, and what it is measured against."""
    found = {cell["model"]: cell for _, cell in cells("parity")}
    rows = [[f"parity on lengths 40 to 256, {model}", score(found[model]["ours"]["best"]),
             f"{score(found[model]['published']['best'])} published"]
            for model in ("DeltaNet [-1,1]", "DeltaNet [0,1]", "Mamba [-1,1]")]
    s5 = next(cell for _, cell in cells("steady") if cell["task"] == "S5")
    rows.append(["words of S5 of 512 letters, DeltaProduct n_h = 4",
                 f"{score(s5['ours']['best'])}, median {score(s5['ours']['median'])}", "about 0 published"])
    ours = {(shape(row), row["precision"]): row["both"]["ms"] for row in lines("delta_product.jsonl")[1]
            if row.get("op") == "delta_product" and "peak_mib" in row}
    for name, at, precision in (("delta rule, forward and backward, `accurate`", "8,4096,1,16,128,128", "accurate"),
                                ("the same, `fast`", "8,4096,1,16,128,128", "fast"),
                                ("DeltaProduct, 2 steps a token, `accurate`", "8,4096,2,16,128,128", "accurate")):
        theirs = alone()[at][0].split(" / ")[1]
        rows.append([name, f"{digits(ours[at, precision])} ms", f"{theirs} ms fla 0.6"])
    models = lines("lm.jsonl")[1]
    ours_lm = next(row for row in models if row.get("who") == "lrnn" and row["model"] == "340M DeltaNet")
    fla_lm = next(row for row in models if row.get("who") == "fla" and row["model"] == "340M DeltaNet")
    rows.append(["training DeltaNet with 340M parameters, 16 × 2,048", f"{ours_lm['tokens_per_s'] / 1e3:.0f}k tokens/s",
                 f"{fla_lm['tokens_per_s'] / 1e3:.0f}k tokens/s fla 0.5"])
    step = cpu("step")[0]
    rows.append(["training step of the parity model, 2 CPU cores", f"{step['lrnn_ms']:.4g} ms",
                 f"{step['chunk_ms']:.4g} ms plain PyTorch, chunk form"])
    where, older, text = lines("delta_product.jsonl")[0], lines("cpu.jsonl")[0], lines("lm.jsonl")[0]
    return table(["", "lrnn", "beside it"], rows) + [
        "", f"*GPU: {where['machine']}, commit {where['commit']}, {where['date']}, (B,T,H,K,V) = (8,4096,16,128,128) in bfloat16; 340M: "
        f"commit {text['commit']}, {text['date']}; fla in runs of its own. CPU: an earlier build, {older['date']}. Parity: scaled accuracy at the last step, best of 3 seeds; 0 is guessing. S5: words right at every place, with [settings of ours](docs/steady.md), best and median of {s5['seeds']} seeds.*"]


# --------------------------------------------------------------------------------------------- filling
def extracted():
    """What `scripts/zoo.py` learnt from trained models."""
    rows = []
    for row in lines("extract.jsonl")[1]:
        mixer = row["mixer"] + (f", {row['householders']}" if row["householders"] else "")
        last, parts = row["last"], row["first_difference"]
        agreed = "no difference" if row["agreed"] else f"{parts['length']}" if parts else "–"
        rows.append([row["name"], mixer, f"{row['states']} of {row['true_states']}" + ("" if row["same"] else ", another"),
                     f"{row['within'][0]} of {row['within'][1]}", f"{last['equal']} of {last['words']}", agreed,
                     {True: "proved", False: "NO", None: "–"}[row["proved"]], f"{row['seconds']:.0f} s"])
    head = ["model", "mixer, Householders", "states, learnt of true", "alike up to the training length", "alike at the longest",
            "first difference at", "compiled", "time"]
    return table(head, rows) + ["", source("extract.jsonl")]


TABLES = [headline, delta_product, other_chips, long_sequences, language_models, ops, training, seeds, decoding, peers, peers_alone, cpu_steps, cpu_ops,
          cpu_length, accuracy, grazzi, parity_variants, siems, groups, runs, lower, extracted, *steady_tables.TABLES, *peer_tables.TABLES]
BLOCK = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.S)


def filled(text):
    make = {function.__name__: function for function in TABLES}
    make |= {name: partial(function, table) for name, function in lm_tables.TABLES.items()}
    return BLOCK.sub(lambda m: m[1] + "\n" + "\n".join(make[m[2]]()) + "\n\n" + m[3], text)


def main():
    stale = []
    for name in DOCUMENTS:
        file = ROOT / name
        now = file.read_text()
        new = filled(now)
        if new != now:
            stale.append(name)
            if "--check" not in sys.argv:
                file.write_text(new)
                print("wrote", name)
    if "--check" in sys.argv and stale:
        sys.exit(f"tables.py: out of date: {', '.join(stale)}; run scripts/tables.py")


if __name__ == "__main__":
    main()
