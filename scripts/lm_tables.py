"""Tables of the language models of scripts/lm_experiment.py, for scripts/tables.py: from results/lm.tar.gz."""
import csv
import io
import json
import re
import statistics
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARCHIVE = ROOT / "results/lm.tar.gz"
NAMES = {"python_40M_delta_net_01": "DeltaNet [0,1]", "python_40M_n1": "DeltaNet [-1,1]", "python_40M_n2": "DeltaProduct n_h=2",
         "python_40M_n3": "DeltaProduct n_h=3"}
POSITIONS = [256, 1024, 4096, 8192, 16384, 32768]
MISSING = ["*Not measured yet: `scripts/lm_experiment.py` does it.*"]
GUESSING = {"swaps": "0.20", "coins": "0.50", "chess": "0.17, always a pawn 0.5"}
WHEN = {"untrained": "untrained", "seed": "pre-trained", "tuned_untrained": "untrained, then tuned",
        "tuned_seed": "pre-trained, then tuned"}


class Results:
    """The archive: what each run left, by its path."""

    def __init__(self):
        with tarfile.open(ARCHIVE) as archive:
            self.files = {m.name: archive.extractfile(m).read().decode() for m in archive.getmembers() if m.isfile()}
        self.about = json.loads(self.files["lm/experiment.json"])
        self.rows = self.about["rows"]

    def json(self, row, run, name):
        text = self.files.get(f"lm/{row}/{run}/{name}")
        return json.loads(text) if text else None

    def runs(self, row, beginning):
        """The names of a row's runs that begin so, and then a number or nothing."""
        found = {path.split("/")[2] for path in self.files if path.startswith(f"lm/{row}/")}
        return sorted(run for run in found if re.fullmatch(beginning + r"\d*", run))

    def each(self, row, beginning, name):
        return [found for run in self.runs(row, beginning) if (found := self.json(row, run, name)) is not None]

    def curves(self, row, domain):
        """Of every seed {position: smoothed loss}."""
        out = []
        for run in self.runs(row, "seed"):
            text = self.files.get(f"lm/{row}/{run}/eval/position.csv")
            if text:
                out.append({int(line["position"]): float(line["smoothed"]) for line in csv.DictReader(io.StringIO(text))
                            if line["domain"] == domain})
        return out


def results():
    return Results() if ARCHIVE.exists() else None


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
def lm_loss(table):
    """Means over whole windows, by domain."""
    if not (found := results()):
        return MISSING
    names, length = domains(found), found.about["evaluation"]["length"]
    out = []
    for row in found.rows:
        seeds = found.each(row, "seed", "eval.json")
        trained = [one["evaluation"]["loss"] for one in found.each(row, "seed", "result.json")]
        by = {name: [d["loss"] for one in seeds for d in one["domains"] if d["name"] == name] for name in names}
        bits = [statistics.mean(d["bits_per_byte"] for one in seeds for d in one["domains"] if d["name"] == name)
                if seeds else float("nan") for name in names]
        out.append([NAMES.get(row, row), len(trained), around(trained), *[around(by[name]) for name in names],
                    " / ".join(f"{x:.3f}" for x in bits)])
    return table(["model", "seeds", "mixed, 4,096", *[f"{name}, {length:,}" for name in names], "bits per byte"], out)


def lm_position(table):
    """Smoothed loss at some positions, the mean over seeds; and how it changed beyond the length of training."""
    if not (found := results()):
        return MISSING
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
            out.append([domain, NAMES.get(row, row), *cells, around(change)])
    return table(["text", "model", *[f"{p:,}" for p in shown], f"{longest:,} less {trained:,}"], out)


def lm_beta(table):
    """How much of beta lies above 1, by layer: after training, and of all layers before it."""
    if not (found := results()):
        return MISSING
    rows = [row for row in found.rows if not row.endswith("_01")]

    def share(seen, layer):
        of = [head["above_one"] for head in seen["heads"] if layer is None or head["layer"] == layer]
        return 100 * statistics.mean(of)

    seen = {row: found.each(row, "seed", "spectrum.json") for row in rows}
    layers = sorted({head["layer"] for row in rows for one in seen[row] for head in one["heads"]})
    out = [[str(layer), *[around([share(one, layer) for one in seen[row]], 1) for row in rows]] for layer in layers]
    out.append(["all", *[around([share(one, None) for one in seen[row]], 1) for row in rows]])
    out.append(["all, untrained", *[around([share(one, None) for one in found.each(row, "untrained", "spectrum.json")], 1)
                                    for row in rows]])
    return table(["layer", *[f"{NAMES.get(row, row)}, %" for row in rows]], out)


def lm_state(table):
    """Shares of questions that are answered right, at each length."""
    if not (found := results()):
        return MISSING
    scores, lengths = {}, set()
    for row in found.rows:
        for beginning in WHEN:
            for one in found.each(row, beginning, "tasks.json"):
                for task in one["tasks"]:
                    kind, length = task["name"].rsplit("-", 1)
                    lengths.add(int(length))
                    scores.setdefault((kind, beginning, row, int(length)), []).append(task["acc"])
    out = []
    for kind in GUESSING:
        for beginning, when in WHEN.items():
            cells = [", ".join(f"{statistics.mean(scores[key]):.2f}" if (key := (kind, beginning, row, length)) in scores else "–"
                               for length in sorted(lengths)) for row in found.rows]
            if any(cell.strip("–, ") for cell in cells):
                out.append([f"{kind} ({GUESSING[kind]})", when, *cells])
    return table(["task (guessing)", "model is", *[NAMES.get(row, row) for row in found.rows]], out) + [
        "", f"*Shares right after {', '.join(map(str, sorted(lengths)))} steps; {found.about['evaluation']['questions']} questions each, "
        f"the pre-trained ones by {len(found.about['seeds'])} seeds.*"]


def lm_settings(table):
    """What was trained, on what, how long."""
    if not (found := results()):
        return MISSING
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
    out.append(["tuned on state text", f"{about['tune']['updates']} updates, rate {about['tune']['lr']}, 3 parts state to 1 of Python"])
    out.append(["ms an update", ", ".join(f"{NAMES.get(row, row)} {1e3 * s:.1f}" for row, s in about["seconds_an_update"].items())])
    out.append(["the same updates twice", "the same bits" if about["same_bits_twice"] else "OTHER bits"])
    return table(["", ""], out)


def tokens_an_update(about):
    def of(key, default):
        return int(next((s.split("=")[1] for s in reversed(about["settings"]) if s.startswith(key + "=")), default))
    return of("train.batch", 64) * of("task.train.length", 4096)


def headline_row():
    """For the README: far beyond the length of training, on held-out Python; of a whole experiment alone."""
    if not (found := results()) or not (found.about["complete"] and found.about["same_bits_twice"]):
        return []
    far = {row: [at(curve, found.about["evaluation"]["length"]) for curve in found.curves(row, "python")] for row in found.rows}
    if not all(far.get(row) for row in ("python_40M_n1", "python_40M_n3")):
        return []
    length = found.about["evaluation"]["length"]
    return [[f"40M language models, loss on Python at token {length:,}: DeltaProduct n_h=3", f"{statistics.mean(far['python_40M_n3']):.3f}",
             f"{statistics.mean(far['python_40M_n1']):.3f} our DeltaNet [-1,1]"]]


def lm_figure(table):
    """None yet, or drawn by `lm_experiment.py take`."""
    alike = "Loss by position on held-out Python, prose and mathematics, four models, with a rule at the length of training"
    return [f"![{alike}](lm_position.svg)"] if (ROOT / "docs/lm_position.svg").exists() else MISSING


TABLES = [lm_figure, lm_loss, lm_position, lm_beta, lm_state, lm_settings]
