#!/usr/bin/env python3
"""The benchmarks of two build folders in turn on one machine: what became slower.

  bench/side_by_side.py BEFORE AFTER [PROGRAM ...] [--rounds 2] [--limit 0.02] [--json FILE]

BEFORE and AFTER are build folders, of two commits, say. Each PROGRAM is run out of one, then out of the other, and so on; of every
timing the best of the rounds counts. Without names these are the GPU's: delta_product_gpu_bench, ops_gpu_bench, train_gpu_bench.
Those on Google Benchmark (train_bench, ops_bench) can be named, too. What is printed of a program is kept in AFTER/side-by-side/.
A timing counts as slower where the ratio is above 1 + LIMIT and the rounds of either side lie closer together than that.
Exit code 1: something is slower; 2: a program could not be run.
"""
import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

PROGRAMS = ["delta_product_gpu_bench", "ops_gpu_bench", "train_gpu_bench"]
TIMES = {"ms", "us", "ms_of_all"}  # in a line of JSON; `forward` and `both` have an ms of their own
NO_NAME = {"kernels"}  # whole numbers that are results


def stop(message, hint):
    print(f"side_by_side.py: {message}\n  {hint}", file=sys.stderr)
    sys.exit(2)


def timings(text):
    """{(name of the case, which time): value} of what a program printed."""
    if '"benchmarks"' in text:
        return {(run["name"], run["time_unit"]): run["real_time"] for run in json.loads(text)["benchmarks"]}
    out = {}
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        row = json.loads(line)
        name = " ".join(f"{k}={v}" if isinstance(v, (int, bool)) else v for k, v in row.items()
                        if isinstance(v, (str, bool, int)) and k not in NO_NAME)
        for key, value in row.items():
            if key in TIMES:
                out[name, key] = value
            elif isinstance(value, dict) and "ms" in value:
                out[name, key] = value["ms"]
    return out


def run(build, program, kept):
    command = [str(build / program)] + ([] if "gpu" in program else ["--benchmark_format=json"])
    try:
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        stop(f"{command[0]} cannot be run: {error.strerror}", f"`ninja -C {build} benchmarks benchmarks_gpu` builds the programs")
    kept.write_text(process.stdout)
    if process.returncode:
        stop(f"{command[0]} ended with {process.returncode}", f"what it printed is {kept}")
    return timings(process.stdout)


def spread(times):
    return max(times) / min(times) - 1


def compare(rounds, limit):
    """A row for each timing that both sides have: ratio, best of each, whether it is slower."""
    common = [key for key in rounds[1][0] if all(key in one for side in rounds for one in side)]
    for key in common:
        before, after = ([one[key] for one in side] for side in rounds)
        ratio = min(after) / min(before)
        yield dict(case=key[0], time=key[1], before=min(before), after=min(after), ratio=round(ratio, 4),
                   slower=ratio > 1 + limit and max(spread(before), spread(after)) < ratio - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, metavar="BEFORE")
    parser.add_argument("after", type=Path, metavar="AFTER")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", default=PROGRAMS)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=0.02, help="how much slower is too much (0.02)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every timing, as lines of JSON")
    a = parser.parse_args()
    for build in (a.before, a.after):
        if not build.is_dir():
            stop(f"there is no folder {build}", "name two build folders")
    folder = a.after / "side-by-side"
    folder.mkdir(exist_ok=True)
    rows = []
    for program in a.programs:
        rounds = ([], [])
        for turn in range(a.rounds):
            for side, build in enumerate((a.before, a.after)):
                rounds[side].append(run(build, program, folder / f"{program}.{('before', 'after')[side]}.{turn + 1}"))
        rows += [dict(program=program, **row) for row in compare(rounds, a.limit)]
        if a.json:  # after each: what is measured is not lost
            a.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    slower = [row for row in rows if row["slower"]]
    for row in slower:
        print(f"{row['ratio']:.3f}  {row['before']:.4g} -> {row['after']:.4g}  {row['program']}: {row['case']}, {row['time']}")
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows)) if rows else float("nan")
    print(f"{len(rows)} timings, {len(slower)} slower by more than {a.limit:.0%}, geometric mean of the ratios {mean:.3f}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
