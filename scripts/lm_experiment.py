#!/usr/bin/env python3
"""The experiments of docs/lm.md: four language models of one size, in minutes on one GPU.

  scripts/lm_experiment.py run --size 40M --corpus corpus --out runs/lm --device cuda --seconds 270
  scripts/lm_experiment.py take runs/lm/lm.tar.gz        # into results/, figures and tables of the documents

`corpus` has NAME.jsonl and NAME.eval.jsonl (or .xz, .zst) for python, prose and math, as scripts/corpus.py writes them,
and a folder tokenizer. `run` prepares the data, times some updates, and chooses how many updates each
run gets so that all of them together take --seconds; all get the same number. Seeds come one after another, so that
what is cut short has whole seeds; curves by position come before questions. Whatever is done is not done again: the
same command goes on, and the archive of what is there is written whenever something is done. Several sizes may share
one --out, and its data.
"""
import argparse
import concurrent.futures as futures
import dataclasses
import datetime
import hashlib
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import lm_figure
import lm_tables

ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = {"python": 504, "prose": 67, "math": 50}  # the config's
# What differs from the configs, which are for 2,670 updates of 64 sequences: a short training wants small batches and a
# high rate (Size.lr). The same for every row.
SETTINGS = ["train.batch=8", "train.accumulate=1", "train.recompute=none", "train.log_every=10", "task.eval.samples=48"]


@dataclasses.dataclass(frozen=True)
class Size:
    """What is trained, and what is measured of it."""
    archive: str         # results/ARCHIVE.tar.gz
    rows: tuple          # configs, in the order of training: what is cut short leaves the first
    seeds: tuple
    lr: str
    timed: tuple         # rows whose updates are timed; the others count as long as the longest. Twice: bits are compared
    untrained: bool      # measured before training, too
    tune_updates: int    # on state tracking as text


ROWS_40M = ("python_40M_delta_net_01", "python_40M_n1", "python_40M_n2", "python_40M_n3")
SIZES = {
    "40M": Size("lm", ROWS_40M, (42, 43, 44), "1.0e-3", (*ROWS_40M, ROWS_40M[0]), True, 200),
    "213M": Size("lm_213M", ("python_213M_n1", "python_213M_n3", "python_213M_delta_net_01", "python_213M_n2"), (42,), "6.0e-4",
                 ("python_213M_n2",), False, 0),
}
TIMED, TIMING = (5, 20), 25  # updates between which the time is taken, and how many are made
TUNE_LR = "train.lr=5.0e-4"
PER_OCTAVE = 24  # positions of a curve that are kept
SPECTRUM_WINDOWS = 6
BEGIN = time.monotonic()


def say(text):
    print(f"{time.monotonic() - BEGIN:6.1f} s  {text}", flush=True)


def write(path, value):
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(value if isinstance(value, str) else json.dumps(value, indent=1) + "\n")
    partial.rename(path)


def read(path):
    return json.loads(path.read_text())


class Stopped(Exception):
    """The time is up."""


class Program:
    """Runs lrnn until the time is up; then what runs is asked to save and end."""

    def __init__(self, a):
        self.lrnn, self.out, self.end = a.lrnn, a.out, BEGIN + a.deadline
        self.running, self.lock = set(), threading.Lock()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        time.sleep(max(0.0, self.end - time.monotonic()))
        with self.lock:
            for child in self.running:
                child.send_signal(signal.SIGINT)

    def __call__(self, *words, threads=None, program=None):
        """Its standard output."""
        with self.lock:
            if time.monotonic() > self.end:
                raise Stopped
            env = {**os.environ, "OMP_WAIT_POLICY": "passive", **({"OMP_NUM_THREADS": str(threads)} if threads else {})}
            child = subprocess.Popen([*(program or [self.lrnn]), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     text=True, env=env)
            self.running.add(child)
        out, err = child.communicate()
        with self.lock:
            self.running.discard(child)
        if child.returncode == 130 or (child.returncode and time.monotonic() > self.end):
            raise Stopped
        if child.returncode:
            say(f"FAILED ({child.returncode}): lrnn {' '.join(map(str, words))[:300]}\n{err.strip()[-800:]}")
            raise RuntimeError(err.strip()[-200:])
        return out

    def once(self, path, *words, **how):
        """Its standard output, as a file that is not made again."""
        if not path.exists():
            write(path, self(*words, **how))


# ----------------------------------------------------------------------------------------------- data
def unpack(source, to):
    """One text of the corpus, packed or not."""
    for ready in (source, source.with_name(source.name + ".zst")):  # lrnn reads both
        if ready.exists():
            return ready
    if not to.exists():
        to.parent.mkdir(parents=True, exist_ok=True)
        partial = to.with_suffix(".partial")
        with lzma.open(f"{source}.xz") as packed, open(partial, "wb") as out:
            shutil.copyfileobj(packed, out, 1 << 22)
        partial.rename(to)
    return to


def prepare(a, lrnn):
    """Shards by domain, and state tracking as text."""
    def domain(name):
        files = [unpack(a.corpus / f"{name}{end}.jsonl", a.out / f"text/{name}{end}.jsonl") for end in ("", ".eval")]
        lrnn("prepare", files[0], "--eval", files[1], "--tokenizer", a.corpus / "tokenizer", "--domain", name, "--quiet",
             "-o", a.out / "data" / name)

    def state():
        script = [sys.executable, ROOT / "scripts/state_text.py", "--lrnn", a.lrnn, "-o", a.out / "state"]
        if a.questions and len(list((a.out / "state").glob("*-*.jsonl"))) < 9:
            lrnn("questions", "--count", a.questions, program=script)
        if not a.tune_updates:
            return
        if not (a.out / "state/eval.jsonl").exists():
            lrnn("texts", "--megabytes", a.state_megabytes, program=script)
        lrnn("prepare", a.out / "state/train.jsonl", "--eval", a.out / "state/eval.jsonl", "--tokenizer", a.corpus / "tokenizer",
             "--domain", "state", "--quiet", "-o", a.out / "data/state")

    with futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(state), *[pool.submit(domain, name) for name in WEIGHTS]]:
            done.result()
    out = []
    for name in [*WEIGHTS, *(["state"] if a.tune_updates else [])]:
        manifest = read(a.out / "data" / name / "manifest.json")
        tokens = {split: sum(s["tokens"] for s in manifest["shards"] if s["split"] == split) for split in ("train", "eval")}
        documents = sum((a.out / "data" / name / s["file"]).with_suffix(".idx").stat().st_size // 12  # 12 bytes each
                        for s in manifest["shards"] if s["split"] == "train")
        out.append({"domain": name, "documents": documents, "source_bytes": manifest["source_bytes"], "train_tokens": tokens["train"],
                    "held_out_tokens": tokens["eval"], "sequences": tokens["eval"] // a.eval_length})
    return out


def sources(a, names):
    return "task.data=[" + ", ".join(f"{{path: {a.out}/data/{n}, weight: {w}}}" for n, w in names.items()) + "]"


# ------------------------------------------------------------------------------------------- training
def settings(a):
    return [*SETTINGS, f"train.lr={a.lr}"]


def train(a, lrnn, row, out, steps, *keys, start=()):
    """A run to its end, unless it is there."""
    if (out / "result.json").exists():
        return
    keys = [*settings(a), sources(a, WEIGHTS), f"train.steps={steps}", f"train.eval_every={steps}",
            f"train.checkpoint_every={steps}", *keys, *a.set]
    begun = (out / "config.yaml").exists()
    words = [out, "--resume"] if begun else [*start, ROOT / f"configs/lm/{row}.yaml", *keys, "--out", out]
    # Two at a time: each would count the memory that the other has for its own.
    lrnn("train", *words, "--device", a.device, "--quiet", "--force")


def warmup(steps):
    return f"train.warmup={max(1, min(100, steps // 10))}"


def seconds_an_update(out):
    at = {line["step"]: line["seconds"] for line in map(json.loads, (out / "timing.jsonl").read_text().splitlines())}
    return (at[TIMED[1]] - at[TIMED[0]]) / (TIMED[1] - TIMED[0])


def sha256_of_weights(out, steps):
    return hashlib.sha256((out / f"checkpoints/step-{steps:08d}/model.safetensors").read_bytes()).hexdigest()


def plan(a, lrnn):
    """How long updates take, and so how many there are; whether a row gives the same bits twice."""
    file = a.out / f"plan_{a.archive}.json"
    if file.exists():
        return read(file)
    times, bits, rows = {}, {}, list(a.rows)
    for row in [] if a.updates else [row for row in a.timed if row in rows]:
        out = a.out / row / "timed"
        shutil.rmtree(out, ignore_errors=True)  # an interrupted one would be timed wrongly
        try:
            train(a, lrnn, row, out, TIMING, warmup(TIMING), "train.log_every=5", "task.eval.samples=3", "seed=42")
        except RuntimeError:  # said already; the others go on
            rows = [other for other in rows if other != row]
            continue
        times[row] = seconds_an_update(out)
        bits.setdefault(row, []).append(sha256_of_weights(out, TIMING))
        say(f"{row}: {times[row] * 1e3:.1f} ms an update")
        shutil.rmtree(out)
    if not times and not a.updates:
        sys.exit("lm_experiment: no model could be timed; --updates says how many there are to be")
    twice = [len(set(of)) == 1 for of in bits.values() if len(of) > 1]
    same = all(twice) if twice else None  # None: nobody looked
    steps = a.updates or max(TIMED[0], int(a.seconds / len(a.seeds) / sum(times.get(row, max(times.values())) for row in rows)))
    write(file, {"rows": rows, "updates": steps, "seconds_an_update": times, "same_bits_twice": same})
    say(f"{steps} updates a run" + (f"; {TIMING} updates once more: {'the same' if same else 'OTHER'} bits" if twice else ""))
    return read(file)


# ----------------------------------------------------------------------------------------- evaluation
def questions(a, lrnn, run):
    files = sorted((a.out / "state").glob("*-*.jsonl"))
    lrnn.once(run / "tasks.json", "eval", run, "--task", *files, "--json", "--device", a.device)


def positions(a, lrnn, run, samples):
    lrnn.once(run / "eval.json", "eval", run, "--data", *[a.out / "data" / name for name in WEIGHTS], "--lengths",
              a.eval_length, "--samples", samples, "--json", "--device", a.device)


def spectrum(a, lrnn, run):
    lrnn.once(run / "spectrum.json", "spectrum", run, "--samples", SPECTRUM_WINDOWS, "--json", threads=max(1, (os.cpu_count() or 2) // 3))


def all_runs(a, lrnn, steps, samples, flush):
    """Two trainings at a time, so that one starts and saves while the other computes; what is measured of a run is measured
    beside the trainings that follow. Questions wait until every curve is there. `flush` keeps what there is."""
    training, measuring, counting = (futures.ThreadPoolExecutor(n) for n in (a.jobs, 1, 2))
    after, to_ask = [], []

    def pretrain(row, seed):
        run = a.out / row / f"seed{seed}"
        train(a, lrnn, row, run, steps, warmup(steps), f"seed={seed}")
        say(f"{row}, seed {seed}: loss {read(run / 'result.json')['evaluation']['loss']:.4f}")
        after.append(measuring.submit(positions, a, lrnn, run, samples))
        after.append(counting.submit(spectrum, a, lrnn, run))
        to_ask.append(run)

    def untrained(row):
        """The rate of the first update is 0."""
        run = a.out / row / "untrained"
        train(a, lrnn, row, run, 1, "train.warmup=1", "task.eval.samples=3", f"seed={a.seeds[0]}")
        after.append(counting.submit(spectrum, a, lrnn, run))
        to_ask.append(run)

    def tune(row, start):
        run = a.out / row / f"tuned_{start}"
        train(a, lrnn, row, run, a.tune_updates, warmup(a.tune_updates), TUNE_LR, f"seed={a.seeds[0]}",
              sources(a, {"state": 3, "python": 1}), start=("--from", a.out / row / start))
        say(f"{row}, tuned from {start}: loss {read(run / 'result.json')['evaluation']['loss']:.4f}")
        after.append(measuring.submit(questions, a, lrnn, run))

    def all_done(jobs):
        missing = 0
        for job in jobs:
            missing += wait(job)
            flush()
        return missing

    first = [training.submit(untrained, row) for row in a.rows if a.untrained]
    first += [training.submit(pretrain, row, seed) for seed in a.seeds for row in a.rows]
    starts = [*(["untrained"] if a.untrained else []), f"seed{a.seeds[0]}"] if a.tune_updates else []
    tuned = [training.submit(tune, row, start) for row in a.rows for start in starts]
    missing = all_done(first)
    after += [measuring.submit(questions, a, lrnn, run) for run in to_ask if a.questions]
    missing += all_done(tuned)
    return missing + all_done(after)  # complete: the jobs that add to it have ended


def wait(job):
    try:
        job.result()
        return 0
    except Stopped:
        return 1
    except Exception as error:  # said already; the others go on
        say(f"left out: {type(error).__name__}: {error}")
        return 1


# ------------------------------------------------------------------------------------------- collecting
def thinned(text):
    """PER_OCTAVE positions an octave of every domain, and its last."""
    head, *rows = text.splitlines()
    out, domain, following = [head], None, 0.0
    for i, row in enumerate(rows):
        name, position = row.split(",")[:2]
        if name != domain:
            domain, following = name, 0.0
        last = i + 1 == len(rows) or rows[i + 1].split(",")[0] != domain
        if int(position) >= following or last:
            out.append(row)
            following = int(position) * 2 ** (1 / PER_OCTAVE)
    return "\n".join(out) + "\n"


def collect(a, about):
    """The archive of results/: of every run what is small."""
    folder = a.out / "collected" / a.archive
    shutil.rmtree(folder, ignore_errors=True)
    for row in a.rows:
        for run in sorted((a.out / row).glob("*")):
            full = run.name.startswith("seed")
            if not (run / "result.json").exists():
                continue
            names = ["config.yaml", "result.json", "tasks.json", "spectrum.json"]
            for name in names + (["info.json", "metrics.jsonl", "eval.json"] if full else []):
                if (run / name).exists():
                    write(folder / row / run.name / name, (run / name).read_text().replace(f"{a.out}/", ""))
            if full and (run / "eval.json").exists():
                write(folder / row / run.name / "eval/position.csv", thinned((run / "eval/position.csv").read_text()))
                if (run / "eval/octave.csv").exists():
                    shutil.copyfile(run / "eval/octave.csv", folder / row / run.name / "eval/octave.csv")
    write(folder / "experiment.json", about)
    archive = a.out / f"{a.archive}.tar.gz"
    with tarfile.open(f"{archive}.partial", "w:gz") as to:
        to.add(folder, a.archive)
    return Path(f"{archive}.partial").rename(archive)


def machine(a):
    infos = [file for row in a.rows for file in sorted((a.out / row).glob("seed*/info.json"))]
    info = read(infos[0]) if infos else {}
    return info.get("gpu") or info.get("cpu", "")


def commit():
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return os.environ.get("COMMIT") or done.stdout.strip()


def archives(corpus):
    """What the corpus was made of."""
    out = []
    for file in sorted(corpus.glob("*.json")):
        for one in read(file).get("archives", []):
            out.append({key: one[key] for key in ("package", "sha256", "license")})
        out += [{"package": package, "sha256": None, "license": "Apache-2.0"} for package in read(file).get("packages", [])[:1]]
    return out


def run(a):
    a.out.mkdir(parents=True, exist_ok=True)
    of_size = SIZES[a.size]
    a.archive = a.archive or of_size.archive
    a.lr, a.timed, a.untrained = of_size.lr, of_size.timed, of_size.untrained
    a.rows, a.seeds = a.rows or list(of_size.rows), a.seeds or list(of_size.seeds)
    a.tune_updates = of_size.tune_updates if a.tune_updates is None else a.tune_updates
    lrnn = Program(a)
    corpus = prepare(a, lrnn)
    for one in corpus:
        say(f"{one['domain']}: {one['train_tokens'] / 1e6:.1f} M tokens, held out {one['sequences']} sequences of {a.eval_length:,}")
    planned = plan(a, lrnn)
    steps, a.rows = planned["updates"], planned["rows"]
    each = min(a.sequences, *(one["sequences"] for one in corpus if one["domain"] in WEIGHTS))
    before = a.out / "collected" / a.archive / "experiment.json"  # of a command that was cut short
    seconds_before = read(before)["wall_s"] if before.exists() else 0

    def flush(complete=False):
        config = a.out / a.rows[0] / f"seed{a.seeds[0]}/config.yaml"
        return collect(a, {
            "size": a.size, "commit": commit(), "date": datetime.date.today().isoformat(), "machine": machine(a),
            "command": "scripts/lm_experiment.py " + " ".join(a.words),
            "wall_s": round(time.monotonic() - BEGIN + seconds_before), "complete": complete, "seeds": a.seeds, **planned,
            "settings": [*settings(a), warmup(steps), *a.set],
            "tune": {"updates": a.tune_updates, "lr": TUNE_LR.split("=")[1], "weights": {"state": 3, "python": 1}},
            "corpus": corpus, "evaluation": {"length": a.eval_length, "sequences": each, "questions": a.questions},
            "tokenizer": {"sha256": hashlib.sha256((a.corpus / "tokenizer/tokenizer.model").read_bytes()).hexdigest()},
            "archives": archives(a.corpus), **({"config": config.read_text()} if config.exists() else {})})

    missing = all_runs(a, lrnn, steps, each * len(WEIGHTS), flush)
    archive = flush(missing == 0)
    say(f"{'all is there' if missing == 0 else f'{missing} jobs are missing: the same command goes on'}; {archive}")
    return 0 if missing == 0 else 1


# ---------------------------------------------------------------------------------------------- results
def take(a):
    """The archive into results/, its figures, and the tables of the documents."""
    results = ROOT / "results"
    with tarfile.open(a.archive) as archive:
        name = archive.getnames()[0].split("/")[0]
        shutil.rmtree(results / name, ignore_errors=True)
        archive.extractall(results, filter="data")
    about = read(results / name / "experiment.json")
    kept = results / f"{name}.tar.gz"
    if a.archive.resolve() != kept.resolve():
        shutil.copyfile(a.archive, kept)
    runs = [run for row in about["rows"] for run in sorted((results / name / row).glob("seed*"))]
    with_curves = [run for run in runs if (run / "eval/position.csv").exists()]
    drawn = results / name / f"{name}_position.svg"
    if len(about["rows"]) > 1:  # else there is nothing to compare
        done = subprocess.run([a.lrnn, "curves", *with_curves, "--by", "position", "-o", drawn])
        if done.returncode == 0:
            shutil.copyfile(drawn, ROOT / "docs" / drawn.name)
        else:  # the tables do not need it
            say("no figure was drawn: the reason is above")
        if all((run / "eval/octave.csv").exists() for run in with_curves):
            write(ROOT / f"docs/{name}_beyond.svg", lm_figure.drawn(lm_tables.Results(name)))
    line = {"folder": name, "commit": about["commit"], "wall_s": about["wall_s"], "command": about["command"]}
    others = [text for text in (results / "runs.jsonl").read_text().splitlines() if json.loads(text)["folder"] != name]
    write(results / "runs.jsonl", "\n".join([*others, json.dumps(line, separators=(",", ":"))]) + "\n")
    subprocess.run([sys.executable, ROOT / "scripts/tables.py"], check=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lrnn", default=str(ROOT / "build/lrnn"), help="the program (default: build/lrnn)")
    what = parser.add_subparsers(dest="what", required=True)
    one = what.add_parser("run", help="prepare, train, evaluate, collect")
    one.add_argument("--size", choices=SIZES, required=True)
    one.add_argument("--corpus", type=Path, required=True)
    one.add_argument("--out", type=Path, default=Path("runs/lm"))
    one.add_argument("--device", default="cuda")
    one.add_argument("--seconds", type=float, default=270, help="of all updates together (default: 270)")
    one.add_argument("--deadline", type=float, default=86400, help="seconds after which what runs saves and ends")
    one.add_argument("--updates", type=int, help="of a run; without it so many are chosen that all take --seconds")
    one.add_argument("--rows", nargs="+", help="configs (default: the size's four)")
    one.add_argument("--seeds", nargs="+", type=int, help="(default: of 40M 42 43 44, of 213M 42)")
    one.add_argument("--archive", help="its name (default: lm, lm_213M)")
    one.add_argument("--jobs", type=int, default=2, help="trainings at a time (default: 2)")
    one.add_argument("--eval-length", type=int, default=32768)
    one.add_argument("--sequences", type=int, default=50, help="of each domain at most (default: 50)")
    one.add_argument("--questions", type=int, default=128, help="of each kind and length; 0: none (default: 128)")
    one.add_argument("--tune-updates", type=int, help="on state tracking as text; 0: none (default: of 40M 200, of 213M 0)")
    one.add_argument("--state-megabytes", type=float, default=12, help="of such text (default: 12)")
    one.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="of every config")
    two = what.add_parser("take", help="into results/ and the documents")
    two.add_argument("archive", type=Path)
    a = parser.parse_args()
    a.words = sys.argv[1:]
    sys.exit({"run": run, "take": take}[a.what](a))


if __name__ == "__main__":
    main()
