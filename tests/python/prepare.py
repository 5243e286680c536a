#!/usr/bin/env python3
"""`python -m lrnn prepare`: Parquet files, and tokenizers that C++ does not read, give the shards that C++ writes for the same ids.

Needs PyPI `tokenizers` and `pyarrow`; LRNN names the program.
"""

import importlib.util
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unicodedata

from lib.harness import run, skip  # first: it skips where there is no torch

for needed in ("tokenizers", "pyarrow"):
    if not importlib.util.find_spec(needed):
        skip(f"PyPI `{needed}` is not installed")
import pyarrow
import pyarrow.parquet
import tokenizers

LRNN = os.environ["LRNN"]
root = pathlib.Path(__file__).resolve().parents[2]
folder = tempfile.TemporaryDirectory()
work = pathlib.Path(folder.name)
plays = " ".join(path.read_text() for path in sorted((root / "tests/data/plays").glob("*.txt"))).split()
TEXTS = [" ".join(plays[i : i + 7 + i % 90]) for i in range(0, 40000, 50)] + ["", "<s> is text", "two\nlines"]


def call(*words, code=0, python=True, data=None):
    # The script is `python -m lrnn` without importing torch, which takes longer than all the rest.
    program = [sys.executable, root / "python/script/lrnn"] if python else [LRNN]
    out = subprocess.run([*program, "prepare", *map(str, words)], input=data, capture_output=True, text=True, cwd=work)
    assert out.returncode == code, f"{words} ended with {out.returncode}: {out.stderr}"
    return out.stderr


def shards(name):
    return {path.name: path.read_bytes() for path in sorted((work / name).iterdir()) if path.suffix in (".bin", ".idx")}


def same(a, b):
    assert shards(a) and shards(a) == shards(b), f"{a} and {b} differ"
    a, b = (json.loads((work / name / "manifest.json").read_text()) for name in (a, b))
    a.pop("tokenizer"), b.pop("tokenizer")
    assert a == b


def ids_of(name):
    """[(ids, bytes)] of the training split."""
    out = []
    for path in sorted((work / name).glob("train-*.bin")):
        data, index = path.read_bytes(), path.with_suffix(".idx").read_bytes()
        ids = struct.unpack(f"<{(len(data) - 1024) // 2}H", data[1024:])
        entries = list(struct.iter_unpack("<QI", index))
        ends = [first for first, _ in entries[1:]] + [len(ids)]
        out += [(list(ids[first:end]), size) for (first, size), end in zip(entries, ends)]
    return out


def check_set_up():
    """A byte-level tokenizer that C++ reads, and the same with a normalizer, which C++ refuses."""
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=600, special_tokens=["<s>"], show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    library.train_from_iterator(TEXTS, trainer)
    for name, normalizer in (("plain", None), ("nfc", tokenizers.normalizers.NFC())):
        if normalizer is not None:
            library.normalizer = normalizer
        (work / name).mkdir()
        library.save(str(work / name / "tokenizer.json"))
        (work / name / "tokenizer_config.json").write_text(json.dumps({"bos_token": {"content": "<s>"}}))
    pyarrow.parquet.write_table(pyarrow.table({"text": TEXTS, "n": range(len(TEXTS))}), work / "a.parquet", row_group_size=70)
    (work / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    assert "NFC is not read here" in call("a.jsonl", "--tokenizer", "nfc", "-o", "no", code=2, python=False)
    assert "`python -m lrnn prepare` reads them" in call("a.parquet", "--tokenizer", "plain", "-o", "no", code=2, python=False)


MORE = ["--hold-out", "0.1", "--shard-tokens", "9000", "--domain=plays"]


def check_parquet():
    call("a.jsonl", "--tokenizer", "plain", "-o", "jsonl", *MORE, python=False)
    call("a.parquet", "--tokenizer", "plain", "-o", "parquet", *MORE)
    same("jsonl", "parquet")
    call("a.parquet", "--tokenizer", "plain", "-o", "parquet", *MORE)  # again: nothing is left to do
    same("jsonl", "parquet")


def check_other_tokenizers():
    """Plain ASCII is the same before and after NFC: the shards have to be those of C++."""
    call("a.jsonl", "--tokenizer", "nfc", "-o", "nfc1", *MORE)
    same("jsonl", "nfc1")
    call("a.parquet", "--tokenizer=nfc/tokenizer.json", "-o", "nfc2", *MORE)
    same("jsonl", "nfc2")
    call("-", "--tokenizer", "nfc", "-o", "nfc3", *MORE, data=(work / "a.jsonl").read_text())
    same("jsonl", "nfc3")
    call("a.jsonl", "--tokenizer", "nfc", "-o", "python_eval", "--eval", "a.parquet", "--domain", "x")
    call("a.jsonl", "--tokenizer", "plain", "-o", "cpp_eval", "--eval", "a.jsonl", "--domain", "x", python=False)
    same("cpp_eval", "python_eval")
    library = tokenizers.Tokenizer.from_file(str(work / "nfc/tokenizer.json"))
    apart = unicodedata.normalize("NFD", "ein Käse, naïve 😀")
    (work / "apart.txt").write_text(apart)
    call("apart.txt", "--tokenizer", "nfc", "-o", "apart", "--hold-out", 0)
    bos = library.token_to_id("<s>")
    assert ids_of("apart") == [([bos, *library.encode(apart).ids], len(apart.encode()))]
    call("apart.txt", "--tokenizer", "nfc", "-o", "bare", "--hold-out", 0, "--bos", "none")
    assert ids_of("bare")[0][0] == library.encode(apart).ids
    assert (work / "apart/tokenizer.json").read_bytes() == (work / "nfc/tokenizer.json").read_bytes()


def check_going_on():
    """A bad line is named, what was before it is kept, and the same command goes on."""
    lines = (work / "a.jsonl").read_text().splitlines(keepends=True)
    at = len(lines) - 5
    (work / "b.jsonl").write_text("".join(lines[:at]) + '{"text": 5}\n' + "".join(lines[at:]))
    said = call("b.jsonl", "--tokenizer", "nfc", "-o", "again", *MORE, code=2)
    assert f"b.jsonl, line {at + 1}: there is no text 'text' in it" in said, said
    assert not (work / "again/manifest.json").exists()
    (work / "b.jsonl").write_text("".join(lines))
    call("b.jsonl", "--tokenizer", "nfc", "-o", "again", *MORE)
    same("jsonl", "again")


def check_errors():
    assert "no column 'body'" in call("a.parquet", "--tokenizer", "plain", "-o", "e1", "--field", "body", code=2)
    assert "row 1: 'n' is no text" in call("a.parquet", "--tokenizer", "plain", "-o", "e2", "--field", "n", code=2)
    assert "cannot read b.parquet" in call("b.parquet", "--tokenizer", "plain", "-o", "e3", code=2)
    (work / "c.parquet").write_text("no Parquet")
    assert "cannot read c.parquet" in call("c.parquet", "--tokenizer", "plain", "-o", "e4", code=2)
    (work / "d.txt").write_bytes(b"\xff\xfe")
    assert "d.txt has something that is not UTF-8" in call("d.txt", "--tokenizer", "nfc", "-o", "e5", code=2)
    (work / "tokenizer.json").write_text("{}")
    assert "PyPI `tokenizers` does not read" in call("a.jsonl", "--tokenizer", "tokenizer.json", "-o", "e6", code=2)
    said = call("a.jsonl", "--tokenizer", "nfc", "-o", "jsonl", *MORE, code=2)
    assert "was prepared with another tokenizer" in said, said
    ids = '{"text": "a", "ids": "1 2 600"}\n'
    given = ["-", "--tokenizer", "nfc/tokenizer.json", "-o", "e7", "--ids", "ids"]
    assert "go together" in call(*given, code=2, python=False, data=ids)
    assert "line 1: the id 600 is beyond the vocabulary of 600" in call(*given, "--vocabulary", 600, code=2, python=False, data=ids)
    ids = ids.replace("600", "x")
    assert "not numbers with blanks between them" in call(*given, "--vocabulary", 600, code=2, python=False, data=ids)


run(globals())
