"""Tables of the language models of scripts/lm_experiment.py, for scripts/tables.py: from results/lm.tar.gz (40M
parameters), lm_213M.tar.gz, and lm_again.tar.gz (a model of 40M once more, for what the first experiment had no time for)."""
import csv
import io
import json
import re
import statistics
import tarfile
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"delta_net_01": "DeltaNet [0,1]", "n1": "DeltaNet [-1,1]", "n2": "DeltaProduct n_h=2", "n3": "DeltaProduct n_h=3"}
WITHIN, BEYOND = 2048, 16384  # where octaves begin: the last of training, the last of all
POSITIONS = [256, 1024, 4096, 8192, 16384, 32768]
MISSING = ["*Not measured yet: `scripts/lm_experiment.py` does it.*"]
GUESSING = {"swaps": "0.20", "coins": "0.50", "chess": "0.17, always a pawn 0.5"}
WHEN = {"untrained": "untrained", "seed": "pre-trained", "tuned_untrained": "untrained, then tuned",
        "tuned_seed": "pre-trained, then tuned"}


class Results:
    """The archive: what each run left, by its path."""

    def __init__(self, name):
        with tarfile.open(archive_of(name)) as archive:
            self.files = {m.name.split("/", 1)[1]: archive.extractfile(m).read().decode() for m in archive.getmembers() if m.isfile()}
        self.name = name
        self.about = json.loads(self.files["experiment.json"])
        order = list(NAMES.values())
        self.rows = sorted(self.about["rows"], key=lambda row: order.index(called(row)))

    def json(self, row, run, name):
        text = self.files.get(f"{row}/{run}/{name}")
        return json.loads(text) if text else None

    def runs(self, row, beginning):
        """The names of a row's runs that begin so, and then a number or nothing."""
        found = {path.split("/")[1] for path in self.files if path.startswith(f"{row}/")}
        return sorted(run for run in found if re.fullmatch(beginning + r"\d*", run))

    def each(self, row, beginning, name):
        return [found for run in self.runs(row, beginning) if (found := self.json(row, run, name)) is not None]

    def curves(self, row, domain):
        """Of every seed {position: smoothed loss}."""
        out = []
        for run in self.runs(row, "seed"):
            text = self.files.get(f"{row}/{run}/eval/position.csv")
            if text:
                out.append({int(line["position"]): float(line["smoothed"]) for line in csv.DictReader(io.StringIO(text))
                            if line["domain"] == domain})
        return out


    def octaves(self, row, domain):
        """Of the first seed {sequence: {where an octave begins: loss}}."""
        out = {}
        for run in self.runs(row, "seed")[:1]:
            for line in csv.DictReader(io.StringIO(self.files.get(f"{row}/{run}/eval/octave.csv", ""))):
                if line["domain"] == domain:
                    out.setdefault(int(line["sequence"]), {})[int(line["from"])] = float(line["loss"])
        return out


def archive_of(name):
    return ROOT / "results" / f"{name}.tar.gz"


def called(row):
    """python_40M_n2 is DeltaProduct n_h=2."""
    return NAMES[row.split("_", 2)[2]]


def with_error(values):
    """The mean and its standard error."""
    if len(values) < 2:
        return "–"
    return f"{statistics.mean(values):.3f} ± {statistics.stdev(values) / len(values) ** 0.5:.3f}"


def around(values, digits=3):
    """The mean, and the lowest and highest."""
    if not values:
        return "–"
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def at(curve, position):
    """The nearest position that was kept; the last of N tokens predicts nothing."""
    nearest = min(curve, key=lambda p: abs(p - position))
    return curve[nearest] if abs(nearest - position) <= 0.03 * position else None


def domains(found):
    return [one["domain"] for one in found.about["corpus"] if one["domain"] != "state"]


# ----------------------------------------------------------------------------------------------- tables
def loss(found, table):
    """Means over whole windows, by domain."""
    names, length = domains(found), found.about["evaluation"]["length"]
    out = []
    for row in found.rows:
        seeds = found.each(row, "seed", "eval.json")
        trained = [one["evaluation"]["loss"] for one in found.each(row, "seed", "result.json")]
        by = {name: [d["loss"] for one in seeds for d in one["domains"] if d["name"] == name] for name in names}
        bits = [statistics.mean(d["bits_per_byte"] for one in seeds for d in one["domains"] if d["name"] == name)
                if seeds else float("nan") for name in names]
        out.append([called(row), len(trained), around(trained), *[around(by[name]) for name in names],
                    " / ".join(f"{x:.3f}" for x in bits)])
    return table(["model", "seeds", "mixed, 4,096", *[f"{name}, {length:,}" for name in names], "bits per byte"], out)


def position(found, table):
    """Smoothed loss at some positions, the mean over seeds; and how it changed beyond the length of training."""
    longest = found.about["evaluation"]["length"]
    shown = [p for p in POSITIONS if p <= longest]
    trained = max([p for p in shown if p <= 4096])
    out = []
    for domain in domains(found):
        for row in found.rows:
            curves = found.curves(row, domain)
            cells = []
            for p in shown:
                values = [v for curve in curves if (v := at(curve, p)) is not None]
                cells.append(f"{statistics.mean(values):.3f}" if values else "–")
            change = [at(curve, longest) - at(curve, trained) for curve in curves if at(curve, longest) and at(curve, trained)]
            out.append([domain, called(row), *cells, around(change)])
    return table(["text", "model", *[f"{p:,}" for p in shown], f"{longest:,} less {trained:,}"], out)


def octaves(found, table):
    """How the loss changes beyond the length of training, sequence by sequence; of one seed."""
    out = []
    for domain in domains(found):
        losses = {called(row): {sequence: (of[WITHIN], of[BEYOND]) for sequence, of in found.octaves(row, domain).items() if BEYOND in of}
                  for row in found.rows}
        plain = {sequence: far - near for sequence, (near, far) in losses.get("DeltaNet [-1,1]", {}).items()}
        for name, of in losses.items():
            change = {sequence: far - near for sequence, (near, far) in of.items()}
            less = [x - plain[sequence] for sequence, x in change.items() if sequence in plain]
            means = [f"{statistics.mean(column):.3f}" for column in zip(*of.values())] or ["–", "–"]
            out.append([domain, name, *means, with_error(list(change.values())), "" if name == "DeltaNet [-1,1]" else with_error(less)])
    return table(["text", "model", f"{WITHIN:,}–{2 * WITHIN - 1:,}", f"{BEYOND:,}–{2 * BEYOND - 1:,}", "change",
                  "change less that of DeltaNet [-1,1]"], out)


def beta(found, table):
    """How much of beta lies above 1, by layer: after training, and of all layers before it."""
    rows = [row for row in found.rows if not row.endswith("_01")]

    def share(seen, layer):
        of = [head["above_one"] for head in seen["heads"] if layer is None or head["layer"] == layer]
        return 100 * statistics.mean(of)

    seen = {row: found.each(row, "seed", "spectrum.json") for row in rows}
    layers = sorted({head["layer"] for row in rows for one in seen[row] for head in one["heads"]})
    out = [[str(layer), *[around([share(one, layer) for one in seen[row]], 1) for row in rows]] for layer in layers]
    out.append(["all", *[around([share(one, None) for one in seen[row]], 1) for row in rows]])
    before = [around([share(one, None) for one in found.each(row, "untrained", "spectrum.json")], 1) for row in rows]
    if any(cell != "–" for cell in before):
        out.append(["all, untrained", *before])
    return table(["layer", *[f"{called(row)}, %" for row in rows]], out)


def state(found, table):
    """Shares of questions that are answered right, at each length; of 40M with the model that was trained again."""
    columns = [(called(row), found, row) for row in found.rows]
    if found.name == "lm" and archive_of("lm_again").exists():
        again = Results("lm_again")
        columns += [(f"{called(row)}, again", again, row) for row in again.rows]
    scores, lengths = {}, set()
    for name, where, row in columns:
        for beginning in WHEN:
            for one in where.each(row, beginning, "tasks.json"):
                for task in one["tasks"]:
                    kind, length = task["name"].rsplit("-", 1)
                    lengths.add(int(length))
                    scores.setdefault((kind, beginning, name, int(length)), []).append(task["acc"])
    out = []
    for kind in GUESSING:
        for beginning, when in WHEN.items():
            cells = [", ".join(f"{statistics.mean(scores[key]):.2f}" if (key := (kind, beginning, name, length)) in scores else "–"
                               for length in sorted(lengths)) for name, _, _ in columns]
            if any(cell.strip("–, ") for cell in cells):
                out.append([f"{kind} ({GUESSING[kind]})", when, *cells])
    if not out:
        return MISSING
    seeds = len(found.about["seeds"])
    return table(["task (guessing)", "model is", *[name for name, _, _ in columns]], out) + [
        "", f"*Shares right after {', '.join(map(str, sorted(lengths)))} steps; {found.about['evaluation']['questions']} questions each"
        + (f", the pre-trained ones by {seeds} seeds.*" if seeds > 1 else ".*")]


def settings(found, table):
    """What was trained, on what, how long."""
    about = found.about
    tokens = tokens_an_update(about)
    out = [["machine, build, date", f"{about['machine']}, {about['commit']}, {about['date']}"],
           ["all of it took", f"{about['wall_s']} s, `{about['command']}`"],
           ["updates of a run", f"{about['updates']:,} of {tokens:,} tokens: {about['updates'] * tokens / 1e6:.1f} M tokens"]]
    for one in about["corpus"]:
        held_out = f"; held out: {one['sequences']} sequences of {about['evaluation']['length']:,}"
        out.append([f"text: {one['domain']}", f"{one['train_tokens'] / 1e6:.1f} M tokens of {one['documents']:,} documents"
                    + (held_out if one["domain"] != "state" else "")])
    out.append(["read of each domain", f"{about['evaluation']['sequences']} sequences"])
    out.append(["other than the configs", ", ".join(f"`{key}`" for key in about["settings"])])
    if about["tune"]["updates"]:
        out.append(["tuned on state text", f"{about['tune']['updates']} updates, rate {about['tune']['lr']}, 3 parts state to 1 of Python"])
    if set(about["rows"]) == set(about["seconds_an_update"]):
        out.append(["ms an update", ", ".join(f"{called(row)} {1e3 * s:.1f}" for row, s in about["seconds_an_update"].items())])
    if about["same_bits_twice"] is not None:
        out.append(["the same updates twice", "the same bits" if about["same_bits_twice"] else "OTHER bits"])
    return table(["", ""], out)


def tokens_an_update(about):
    def of(key, default):
        return int(next((s.split("=")[1] for s in reversed(about["settings"]) if s.startswith(key + "=")), default))
    return of("train.batch", 64) * of("task.train.length", 4096)


def figure(found, table):
    """Drawn by `lm_experiment.py take`."""
    drawn = f"{found.name}_position.svg"
    alike = "Loss by position on held-out Python, prose and mathematics, with a rule at the length of training"
    return [f"![{alike}]({drawn})"] if (ROOT / "docs" / drawn).exists() else MISSING


def from_archive(name, function, table):
    return function(Results(name), table) if archive_of(name).exists() else MISSING


TABLES = {f"{name}_{function.__name__}": partial(from_archive, name, function)
          for name in ("lm", "lm_213M", "lm_again")
          for function in (figure, loss, position, octaves, beta, state, settings)}
