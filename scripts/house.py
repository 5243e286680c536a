#!/usr/bin/env python3
"""How the house stands: sizes, long functions, twins, and how far a reader walks, before and now.

  scripts/house.py          of this checkout
  scripts/house.py ROOT     of another one

"Before" is commit 83f1874, by the same rules; the targets are about what was there then. "Begun" is commit
9e232d8, where the redesign began: until then runs that go on by their folder, the estimate of memory, curves,
seeds and others had come, 86 files and 6,125 lines. What came afterwards with Python, texts, language models,
other people's checkpoints, Titans, TTT and extraction (CAME, below) has a row of its own; the rows about sizes leave it out,
so of "now" they are best compared with "begun". Lines that it added to files that were there are still in them.
Functions are found by their brackets and not by a compiler, and lambdas are not counted. Another counter found
104 functions with more than six parameters in "before" and 203 pairs of places of the same shape, for which the
target was 90: 10 of our 23, which are equal to the letter. The walks of that commit were counted by hand, those of
today are lists in docs/design.md.
Scripts and styles of the HTML pages count as lines and files: they stood in headers before.
"""
import collections
import fnmatch
import re
import signal
import sys
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
SRC = ROOT / "src"
CODE = {".h", ".cpp", ".cu", ".cuh", ".inc"}
ENDINGS = CODE | {".js", ".css"}

# What came since the redesign began, for things that were not there: patterns below src/.
CAME = [
    # Python: models behind it, autocast, vmap, float16
    "python/*", "ops/autocast.h", "ops/half.h", "ops/vmap.*",
    # texts, and language models made of them
    "text/*", "tasks/text*", "cli/tokenize.cpp", "cli/prepare.cpp", "base/sha256.*", "ops/linear_cross_entropy/*",
    "kernels/cpu/row_cross_entropy.h", "kernels/cuda/train/row_losses.cu", "ops/again.*", "model/run_again.cpp",
    "training/evaluate_text.*", "training/flops.*", "training/head_loss.*", "training/token_losses.*", "training/ranks.*",
    "cli/eval_task.cpp", "cli/eval_text.cpp", "cli/eval_rank.cpp", "cli/spectrum_text.*", "cli/curves_position.cpp",
    "experiments/betas.*", "experiments/by_position.*", "experiments/text_run.*", "experiments/judge.*",
    "experiments/ranks.*", "experiments/effective_rank.*", "experiments/state_walk.*", "experiments/checkpoint_writer.*",
    # generation
    "cli/generate*", "experiments/generate*", "model/draw_token.*", "ops/draw_token/*", "model/held_state.*",
    "model/weight_copies.*", "*/thin_linear.*", "ops/linears/cuda_thin.cpp", "kernels/cuda/rows/draw_token.*",
    "model/continuation.*", "kernels/cuda/delta_product/few_steps.cu",
    # checkpoints of fla and transformers
    "model/import*", "model/export*", "model/names.*", "model/safetensors_file.*", "cli/import.cpp",
    "experiments/imported.*",
    # key heads that are shared, averages of weights, spectra and curves by step
    "kernels/cuda/delta_product/add_heads.cu", "training/average.*", "cli/spectrum_steps.*", "experiments/through_steps.*",
    "cli/reproduce_curves.cpp",
    # Titans and TTT-Linear
    "*/titans*", "*/ttt*",
    # gates per key channel; what `lrnn doctor` asks by chance
    "kernels/cpu/delta_product_channels.h", "kernels/cuda/delta_product/chunk_channels*",
    # mLSTM with large heads; words that grow
    "kernels/cuda/mlstm/hopper*", "training/growth.*",
    # forward in one kernel
    "kernels/cuda/delta_product/hopper_fused*", "kernels/cuda/delta_product/hopper_squares.cuh", "kernels/cuda/tile/tensor_map.cuh",
    "ops/random_case.*", "cli/doctor_random.*",
    # extraction
    "automata/learn/*", "cli/extract.cpp", "cli/explain_trained.cpp", "experiments/extract.*", "experiments/model_oracle.*",
]


def came(file):
    return any(fnmatch.fnmatch(str(file.relative_to(SRC)), pattern) for pattern in CAME)


def sources(*folders):
    for folder in folders or [""]:
        yield from (f for f in sorted((SRC / folder).rglob("*")) if f.suffix in ENDINGS)


def length(file):
    return len(file.read_text().splitlines())


# ------------------------------------------------------------------------------------------ functions
Function = collections.namedtuple("Function", "name parameters lines file line")
OPEN, CLOSE = "([{", ")]}"
NOT_A_NAME = {"if", "for", "while", "switch", "catch", "return", "sizeof", "alignas", "decltype", "requires",
              "noexcept", "constexpr", "__attribute__", "__launch_bounds__", "defined"}


def blanked(text, keep_texts=False):
    """Comments, texts and preprocessor lines as spaces, so that places and line numbers stay."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*'

    def spaces(match):
        return match[0] if keep_texts and match[0][0] in "R\"'" else re.sub(r"[^\n]", " ", match[0])

    text = re.sub(r"(?<=\d)'(?=\d)", " ", text)  # 1'000'000
    return re.sub(pattern, spaces, text, flags=re.S | re.M)


def end_of(text, at):
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in OPEN) - (text[i] in CLOSE)
        if depth == 0:
            return i + 1
    return len(text)


def parameters(text):
    """Commas that stand in no bracket, plus one."""
    text = text.strip()
    if not text or text == "void":
        return 0
    depth = count = 0
    for i, c in enumerate(text):
        depth += (c in "([{<") - (c in ")]}" or (c == ">" and text[i - 1] != "-"))
        count += c == "," and depth == 0
    return count + 1


BEHIND = re.compile(r"(\s+|const\b|noexcept\b|override\b|final\b|mutable\b|&&?|->\s*[\w:<>*&, ]+)")


def body_of(text, at):
    """Where the body begins of a function whose parameters end at `at`; None if there is none."""
    while match := BEHIND.match(text, at):
        at = match.end()
    if text[at:at + 1] == ":" and text[at:at + 2] != "::":  # what a constructor sets first
        at += 1
        while match := re.compile(r"\s*[\w:]+(<[^;{}()]*>)?\s*").match(text, at):
            if text[match.end():match.end() + 1] not in ("(", "{"):
                return None
            at = end_of(text, match.end())
            if not (comma := re.compile(r"\s*,").match(text, at)):
                break
            at = comma.end()
        at = re.compile(r"\s*").match(text, at).end()
    return at if text[at:at + 1] == "{" else None


def functions(file):
    text = blanked(file.read_text())
    found, at = [], 0
    while match := re.compile(r"([\w~]+)\s*\(").search(text, at):
        at = match.end()
        if match[1] in NOT_A_NAME or match[1].isdigit():
            continue
        close = end_of(text, match.end() - 1)
        body = body_of(text, close)
        if body is None:
            continue
        first, last = text.count("\n", 0, match.start()), text.count("\n", 0, end_of(text, body))
        found.append(Function(match[1], parameters(text[match.end():close - 1]), last - first + 1, file, first + 1))
        at = body + 1  # functions of a struct inside are found, too
    return found


# -------------------------------------------------------------------------------------------- twins
RUN = 6  # lines


def plain_lines(file):
    """Code without indentation, comments, brackets of their own, includes and namespaces. Texts stay: the rows of a
    table of words are not equal."""
    out = []
    for line in blanked(file.read_text(), keep_texts=True).splitlines():
        line = re.sub(r"\s+", " ", line).strip()
        if line and not re.fullmatch(r"[{}();,]+", line) and not line.startswith(("namespace", "using ", "} // ")):
            out.append(line)
    return out


def twins():
    """Pairs of places that have RUN or more equal lines in a row, each run once."""
    code = {file: plain_lines(file) for file in sources() if file.suffix in CODE}
    places = collections.defaultdict(list)
    for file, lines in code.items():
        for i in range(len(lines) - RUN + 1):
            places[tuple(lines[i:i + RUN])].append((file, i))
    pairs = set()
    for group in places.values():
        pairs.update((a, b) for n, a in enumerate(group) for b in group[n + 1:])
    return sum(((a, i - 1), (b, j - 1)) not in pairs for (a, i), (b, j) in pairs)


# -------------------------------------------------------------------------------------------- walks
def walk(title):
    """Files, changes of folder, and of the step `The recurrence` files that are passed and that explain a word, from
    docs/design.md."""
    page = (ROOT / "docs/design.md").read_text()
    if f"### Walk: {title}\n" not in page:
        return None
    text = page.split(f"### Walk: {title}\n")[1].split("\n### ")[0]
    visits = re.findall(r"`([\w/]+\.(?:cpp|h|cuh?|inc))`", text)
    for visit in visits:
        if not (SRC / visit).exists():
            sys.exit(f"house.py: docs/design.md walks to src/{visit}, which is not there")
    changes = sum(Path(a).parent != Path(b).parent for a, b in zip(visits, visits[1:]))
    recurrence = (re.findall(r"\*\*The recurrence\.\*\*(.*?)\n ?\d+\. ", text, re.S) or [""])[0]
    words = set(re.findall(r"\(`([\w/]+\.\w+)`\)", recurrence))
    passed = set(re.findall(r"`([\w/]+\.\w+)`", recurrence)) - words
    return len(set(visits)), changes, len(passed), len(words)


# ---------------------------------------------------------------------------------------------- ops
def ops():
    """Folders of ops, and those of them whose headers declare a definition. `cuda` is the plug-in and `diagonal` the
    back end of two ops that have folders."""
    folders = [f for f in sorted((SRC / "ops").iterdir()) if f.is_dir() and f.name not in ("cuda", "diagonal")]
    has = [f.name for f in folders if any("_definition(" in h.read_text() for h in f.glob("*.h"))]
    return [f.name for f in folders], has


def page(name):
    file = ROOT / name
    return f"{length(file):,}" if file.exists() else "–"


def measure():
    files = list(sources())
    all_functions = [f for file in files if file.suffix in CODE for f in functions(file)]
    wide = [f for f in all_functions if f.parameters > 6]
    kernels = [f for f in all_functions if "kernels/cuda" in str(f.file) and f.lines >= 150]
    cpu, cuda = walk("train on the CPU"), walk("train on CUDA")
    op_folders, defined = ops()
    steps = f"{cpu[2]} + {cpu[3]} files" if cpu else "–"
    house = [f for f in files if not came(f)]
    total = {name: sum(length(f) for f in sources(name) if not came(f)) for name in ("", "ops", "kernels/cuda")}
    return [
        f"{total['']:,} / {len(house)}",
        f"{sum(map(length, files)) - total['']:,} / {len(files) - len(house)}",
        f"{sum(length(f) <= 30 for f in house)} + {sum(length(f) <= 30 for f in files if came(f))}",
        f"{total['ops']:,}",
        f"{total['kernels/cuda']:,}; {len(kernels)}",
        f"{len(list(sources('kernels/cpu')))}",
        f"{len(wide)}; {max(f.parameters for f in all_functions)}",
        f"{twins()}",
        f"{cpu[0]} / {cpu[1]}" if cpu else "–",
        f"{cuda[0]} / {cuda[1]}" if cuda else "–",
        steps,
        f"{len(defined)} of {len(op_folders)}",
        f"{page('README.md')}; {page('docs/kernels.md')}",
    ], wide, kernels, sorted(set(op_folders) - set(defined))


ROWS = [  # what, before, begun, target
    ("src lines / files", "51,251 / 557", "57,376 / 643", "≤ 47,000 / ≤ 450"),
    ("  what came since on top", "–", "–", "–"),
    ("files ≤ 30 lines (+ of what came since)", "135", "168", "≤ 60"),
    ("ops + ops/cuda, lines", "6,973", "7,173", "≤ 5,200"),
    ("kernels/cuda lines; functions ≥ 150 lines", "15,257; 9", "15,258; 9", "≤ 14,000; 0"),
    ("kernels/cpu files", "61", "61", "≤ 32"),
    ("functions > 6 parameters; most", "90; 18", "91; 18", "≤ 25; 8"),
    (f"pairs of places with ≥ {RUN} equal lines", "23", "23", "≤ 10"),
    ("CPU walk: files / changes of folder", "77 / 70", "–", "≤ 58 / ≤ 45"),
    ("CUDA walk: files / changes of folder", "86 / 105", "–", "≤ 65 / ≤ 65"),
    ("from an op to its SIMD loop (+ for words)", "13 files", "–", "7 files"),
    ("ops with a definition", "10", "–", "all"),
    ("README; kernels page, lines", "257; 430", "130; –", "≤ 120; ≤ 150"),
]


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `house.py | head` is no error
    now, wide, kernels, undefined = measure()
    table = [("check", "before", "begun", "target", "now")] + [(*row, n) for row, n in zip(ROWS, now)]
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    for i, row in enumerate(table):
        print("  ".join([row[0].ljust(widths[0])] + [x.rjust(w) for x, w in zip(row[1:], widths[1:])]))
        if i == 0:
            print("  ".join("─" * w for w in widths))

    def at(f):
        return f"{f.file.relative_to(ROOT)}:{f.line} {f.name}"

    print("\nlongest GPU functions:", *[f"  {f.lines} lines  {at(f)}" for f in sorted(kernels, key=lambda f: -f.lines)] or ["  none"], sep="\n")
    print("\nmost parameters:", *[f"  {f.parameters}  {at(f)}" for f in sorted(wide, key=lambda f: -f.parameters)[:8]], sep="\n")
    print("\nops without a definition:", ", ".join(undefined) or "none")


if __name__ == "__main__":
    main()
