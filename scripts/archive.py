#!/usr/bin/env python3
"""Runs into results/NAME.tar.gz, and their table into NAME.md: what the documents are made from, without weights.

  scripts/archive.py NAME FOLDER [--add]

FOLDER is what `lrnn reproduce` wrote (runs/reproduce/SUITE), or folders of seeds side by side. A run, finished or not, keeps its config, machine, result,
accuracy by length and evaluations; words that grew are kept every 50 updates (growth.csv); far.json, which `lrnn eval RUN --lengths N --samples
M --json > RUN/far.json` makes, is kept as a count. With --add, runs and tables that are in the archive and not in FOLDER stay there: unpack it
into runs/reproduce first, so that the tables are of all runs. The same files give the same bytes. Exit code 2: there is nothing to archive.
"""
import argparse
import gzip
import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from measurements import RESULTS

OF_A_RUN = ["config.yaml", "info.json", "result.json", "eval/curve.csv", "eval/length.json", "evaluations.jsonl", "growth.csv"]
OF_ALL = ["table.json", "table.csv", "table.md"]


def stop(message, hint):
    print(f"archive.py: {message}\n  {hint}", file=sys.stderr)
    sys.exit(2)


def from_metrics(run, to):
    """Evaluations of the test, and how words grew."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    with (to / "evaluations.jsonl").open("w") as out:
        out.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows if row["kind"] == "eval")
    grown = [row for row in rows if row["kind"] == "train" and row["step"] % 50 == 0]
    if len({row.get("length") for row in grown}) > 1:
        with (to / "growth.csv").open("w") as out:
            out.write("step,length,accuracy,loss\n")
            out.writelines(f"{row['step']},{row['length']},{row['accuracy']:.4f},{row['loss']:.4f}\n" for row in grown)


def keep_run(run, to):
    for name in OF_A_RUN:
        if (run / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(run / name, to / name)
    if (run / "metrics.jsonl").exists():
        from_metrics(run, to)
    if (run / "far.json").exists():
        far = json.loads((run / "far.json").read_text())
        if "evaluation" in far:
            of = far["evaluation"]
            far = {"length": of["by_length"][-1]["length"], "right": of["right"], "count": of["count"]}
        (to / "far.json").write_text(json.dumps(far) + "\n")


def keep(folder, to):
    runs = sorted(path.parent for path in folder.rglob("info.json"))
    if not runs:
        stop(f"no run in {folder}", "`lrnn reproduce SUITE` writes to runs/reproduce/SUITE")
    for run in runs:
        keep_run(run, to / run.relative_to(folder))
    for name in OF_ALL:
        if (folder / name).exists():
            shutil.copyfile(folder / name, to / name)
    if (folder / "table.md").exists():
        shutil.copyfile(folder / "table.md", RESULTS / f"{to.name}.md")
    for figure in sorted((folder / "curves").glob("*.svg")):
        (to / "curves").mkdir(exist_ok=True)
        shutil.copyfile(figure, to / "curves" / figure.name)
    return len(runs)


def plain(member):
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--add", action="store_true", help="to what is in the archive")
    given = parser.parse_args()
    archive = RESULTS / f"{given.name}.tar.gz"
    if given.add and not archive.exists():
        stop(f"there is no {archive} to add to", "leave out --add for a new one")
    with tempfile.TemporaryDirectory() as temporary:
        to = Path(temporary) / given.name
        to.mkdir()
        if given.add:
            with tarfile.open(archive) as old:
                old.extractall(temporary, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # since 3.11.4
        count = keep(given.folder, to)
        with archive.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed, \
                tarfile.open(fileobj=packed, mode="w") as out:
            for path in sorted(to.rglob("*")):
                out.add(path, f"{given.name}/{path.relative_to(to)}", recursive=False, filter=plain)
    print(f"{archive.relative_to(RESULTS.parent)}: {count} runs, {archive.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
