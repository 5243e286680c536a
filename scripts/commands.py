#!/usr/bin/env python3
"""Writes docs/commands/: a page for every command of the program, from what its --help prints.

  scripts/commands.py            write them; LRNN names the program (default: build/lrnn)
  scripts/commands.py --check    say which page is out of date; exit code 1 if one is
  scripts/commands.py train run  these commands' pages alone
"""
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/commands"
LRNN = os.environ.get("LRNN", str(ROOT / "build/lrnn"))
MORE = {  # where a page says more
    "train": [("training", "training.md"), ("every key", "reference.md"), ("tasks", "tasks.md")],
    "eval": [("what is counted", "tasks.md"), ("kernels and accuracy", "numerics.md")],
    "spectrum": [("theory", "theory.md")],
    "curves": [("training", "training.md")],
    "reproduce": [("reproducing the tables", "reproduce.md"), ("results", "results.md")],
    "show": [("every key", "reference.md"), ("what training takes", "design.md")],
    "export": [("checkpoints", "checkpoints.md"), ("mixers", "tables.md"), ("the tour for users of fla", "tutorial.md")],
    "import": [("checkpoints", "checkpoints.md"), ("from Python", "python.md")],
    "check": [("naming an automaton", "automata.md"), ("theory", "theory.md")],
    "compile": [("naming an automaton", "automata.md"), ("compiling", "compiling.md")],
    "run": [("what a model answers", "automata.md")],
    "verify": [("certificate and margin", "compiling.md")],
    "extract": [("from weights to automata", "extract.md"), ("naming an automaton", "automata.md")],
    "explain": [("compiling", "compiling.md")],
    "tokenize": [("text", "text.md")],
    "prepare": [("text", "text.md")],
    "tasks": [("tasks", "tasks.md")],
    "mixers": [("mixers", "tables.md"), ("every key", "reference.md")],
    "doctor": [("numerics", "numerics.md")],
    "demo": [("tutorial", "tutorial.md")],
}
ONLY = [word for word in sys.argv[1:] if not word.startswith("-")]
MARK = "<!-- Written by scripts/commands.py from --help; a test compares. -->"


def say(*words):
    done = subprocess.run([LRNN, *words, "--help"], capture_output=True, text=True, check=True)
    return done.stdout.rstrip().splitlines()


def entries(lines):
    """`  --name TYPE     what it is` rows; a long name has its text on the next line."""
    out = []
    for line in lines:
        match = re.match(r"  (\S.*?)(?:  +(\S.*))?$", line)
        if match:
            out.append([match[1], match[2] or ""])
        elif line.strip() and out:
            out[-1][1] = (out[-1][1] + " " + line.strip()).strip()
    return out


def name_of(text):
    """CLI11's hints about types (N:POSITIVE, TEXT ..., Needs: --seeds) in fewer words."""
    text = re.sub(r" TEXT:\{([^}]*)\}", lambda m: " " + m[1].replace(",", " or "), text)
    text = re.sub(r":(POSITIVE|NONNEGATIVE|\{[^}]*\})", "", text)
    text = re.sub(r" Needs: (\S+)", r" (with \1)", text)
    for old, new in ((",.. ...", ",…"), (" TEXT ...", " …"), (" TEXT", ""), (" ...", " …"), (",--", ", --"), (" REQUIRED", "")):
        text = text.replace(old, new)
    return text


def table(title, rows):
    cell = [(f"`{name_of(name)}`", what.replace("|", "\\|").replace("<", "&lt;") +
             (" (needed)" if name.startswith("-") and " REQUIRED" in name else "")) for name, what in rows]
    return [f"## {title}", "", "| | |", "| --- | --- |", *[f"| {a} | {b} |" for a, b in cell], ""]


def page(title, lines, level="#"):
    """The help of one command: what it is, usage, sections of rows, then text and examples."""
    about, usage = lines[0], lines[1].removeprefix("Usage: ")
    out = [f"{level} {title}", "", about[0].upper() + about[1:] + ".", "", "```", usage, "```", ""]
    text = "\n".join(lines[2:]).strip("\n") + "\n"
    # Sections have a heading and rows; what follows the last of them is prose.
    sections = list(re.finditer(r"^(Positionals|Options|Subcommands):\n((?:  .*\n|\n(?=  \S))+)", text, re.M))
    for section in sections:
        rows = [row for row in entries(section[2].splitlines()) if not row[0].startswith("-h,")]
        name = {"Positionals": "Arguments", "Subcommands": "Inside it"}.get(section[1], section[1])
        if rows:
            out += [x.replace("## ", level + "# ") for x in table(name, rows)]
    rest = text[sections[-1].end():].strip("\n") if sections else text.strip("\n")
    for part in re.split(r"\n\n|\n(?=Examples?:)", rest):
        if not part.strip():
            continue
        if re.match(r"Examples?:", part):
            code = [line[2:] for line in part.splitlines()[1:] if line.startswith("  ")]
            after = [line for line in part.splitlines()[1:] if not line.startswith("  ")]
            out += ["```", *code, "```", ""] + (after + [""] if after else [])
        else:
            out += [re.sub(r"<", "&lt;", part), ""]
    return out


def pages():
    overview = say()
    commands = [match.groups() for line in overview if (match := re.match(r"  ([a-z]+) {2,}(\S.*)", line))]
    index = ["# Commands", "", MARK, "", "| command | what it does |", "| --- | --- |"]
    index += [f"| [`lrnn {name}`]({name}.md) | {about} |" for name, about in commands]
    index += ["", "Every command explains itself with `--help` and answers scripts with `--json`.", "",
              "| exit code | |", "| ---: | --- |", "| 0 | done |", "| 1 | the answer is no |", "| 2 | an error, in one sentence and a hint |",
              "| 130 | interrupted |", ""]
    yield "index", index
    for name, _ in commands:
        if ONLY and name not in ONLY:
            continue
        lines = say(name)
        out = page(f"lrnn {name}", lines)
        out[1:1] = ["", MARK]
        inner = re.search(r"^Subcommands:\n((?:  .*\n?)+)", "\n".join(lines), re.M)
        for sub in re.findall(r"^  (\w+)", inner[1], re.M) if inner else []:
            out += page(f"lrnn {name} {sub}", say(name, sub), "##")
        links = ", ".join(f"[{text}](../{target})" for text, target in MORE.get(name, []))
        yield name, out + ([f"More: {links}.", ""] if links else [])


def main():
    FOLDER.mkdir(exist_ok=True)
    stale, names = [], set()
    for name, out in pages():
        names.add(name + ".md")
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"
        file = FOLDER / f"{name}.md"
        if not file.exists() or file.read_text() != text:
            stale.append(file.name)
            if "--check" not in sys.argv:
                file.write_text(text)
                print("wrote", file.relative_to(ROOT))
    if not ONLY:
        stale += [f"{file.name} (no such command)" for file in FOLDER.glob("*.md") if file.name not in names]
    if "--check" in sys.argv and stale:
        sys.exit(f"commands.py: out of date in docs/commands: {', '.join(stale)}; run scripts/commands.py")


if __name__ == "__main__":
    main()
