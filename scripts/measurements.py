"""What scripts/tables.py and its parts share: measurements under results/ read, rows of Markdown written."""
import json
import re
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"


# ------------------------------------------------------------------------------------------- reading
def in_archive(name, pattern, read=json.load):
    """The JSON files of a set of runs whose paths match, from its archive."""
    with tarfile.open(RESULTS / f"{name}.tar.gz") as archive:
        members = sorted(m.name for m in archive.getmembers() if re.fullmatch(f"{name}/{pattern}", m.name))
        return [read(archive.extractfile(member)) for member in members]


def json_lines(file):
    return [json.loads(line) for line in file]


def lines(name):
    """The first line says where and when, the others are measurements."""
    first, *rest = [json.loads(line) for line in (RESULTS / "bench" / name).read_text().splitlines()]
    return first, rest


def source(name, rows=()):
    """Where and when. Of older numbers the build is not known, only the commit that wrote them down, which a row may
    name for itself."""
    where, _ = lines(name)
    if "commit" in where:
        when = f"commit {where['commit']}, {where['date']}"
    else:
        noted = dict.fromkeys((row.get("written_down_in", where["written_down_in"]), row.get("date", where["date"]))
                              for row in rows or [{}])
        when = "build not noted, written down in " + ", ".join(f"{commit} ({date})" for commit, date in noted)
    command = f", `{where['command']}`" if "command" in where else ""
    return f"*{where['machine'][0].upper()}{where['machine'][1:]}, {when}{command}: `results/bench/{name}`.*"


def cells(*folders):
    """The cells of `lrnn reproduce` that have a result."""
    for folder in folders:
        for cell in in_archive(folder, r"table\.json")[0]["cells"]:
            if cell["ours"]["best"] is not None:
                yield folder, cell


# ------------------------------------------------------------------------------------------- writing
def table(head, rows):
    """Columns of numbers, lists of numbers excepted, go to the right; the first column names the row."""
    rows = [[str(x) for x in row] for row in rows]
    right = [i > 0 and re.match(r"[-−]?\d", rows[-1][i]) and ", " not in rows[-1][i] for i in range(len(head))]
    out = ["| " + " | ".join(head) + " |", "| " + " | ".join("---:" if r else "---" for r in right) + " |"]
    return out + ["| " + " | ".join(row) + " |" for row in rows]


def digits(x, count=3):
    """Three digits that count, and never 1e+03."""
    if x is None:
        return "–"
    if x < 0.1:
        return f"{x:.{count}f}"
    return f"{x:#.{count}g}".rstrip(".") if x < 10**count else f"{x:.0f}"


def power(x):
    return f"{x:.0e}".replace("e-0", "e-").replace("e+00", "")


def score(x):
    return "–" if x is None else f"{x:.3f}"


def spread(of):
    return "–" if of["median"] is None else f"{of['median']:.3f} ± {of['mad']:.3f}"
