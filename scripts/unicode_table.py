#!/usr/bin/env python3
"""Writes src/text/unicode_table.inc: which code points are letters, numbers, white space and parts of words.

  scripts/unicode_table.py          write it
  scripts/unicode_table.py --check  say whether it is out of date; exit code 1 if it is

Not Unicode's own files are asked but PyPI `tokenizers` (tests/requirements.txt pins it), code point by code point:
our byte-level BPE is to give the ids that it gives, and its tables are of a Unicode version of their own.
"""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / ".venv/tests"))
import tokenizers  # noqa: E402
from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers  # noqa: E402

TABLE = ROOT / "src/text/unicode_table.inc"
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def matched(splitter):
    """The code points that a splitter keeps as pieces of their own."""
    out = set()
    for at in range(0, len(POINTS), 4096):
        text = "".join(map(chr, POINTS[at:at + 4096]))
        out.update(ord(c) for piece, _ in splitter.pre_tokenize_str(text) for c in piece)
    return out


def by_pattern(pattern):
    return matched(pre_tokenizers.Split(Regex(pattern), "removed", invert=True))


def numeric():
    digits = pre_tokenizers.Digits(individual_digits=False)
    return {c for c in POINTS if len(digits.pre_tokenize_str(f"a{chr(c)}a")) == 3}


def around_a_token(**how):
    """The code points before which an added token is taken for something else than it is alone."""
    tokenizer = Tokenizer(models.BPE(vocab={"[UNK]": 0}, merges=[], unk_token="[UNK]", fuse_unk=True))
    tokenizer.add_tokens([AddedToken("<q>", **how)])
    token = tokenizer.token_to_id("<q>")
    plain = [0, token]
    texts = [chr(c) + "<q>" for c in POINTS]
    return {c for c, e in zip(POINTS, tokenizer.encode_batch(texts, add_special_tokens=False)) if e.ids != plain}


def table():
    space = by_pattern(r"\s")
    assert around_a_token(lstrip=True, normalized=False) == space, "tokens are stripped of another white space"
    classes = [by_pattern(r"\p{L}"), by_pattern(r"\p{N}"), space, around_a_token(single_word=True, normalized=False),
               numeric()]
    runs, last = [], None
    for c in range(0x110000):
        bits = sum(1 << i for i, members in enumerate(classes) if c in members)
        if bits != last:
            runs.append(f"{{{c:#x}, {bits}}}")
            last = bits
    counts = ", ".join(f"{len(c):,} {name}" for c, name in
                       zip(classes, ["letters", "numbers", "white space", "of words", "numeric"]))
    lines = [f"// Written by scripts/unicode_table.py from tokenizers {tokenizers.__version__}; do not edit.",
             f"// {counts}."]
    line = ""
    for run in runs:
        if len(line) + len(run) + 2 > 100:
            lines.append(line)
            line = ""
        line += (" " if line else "") + run + ","
    return "\n".join(lines + [line]) + "\n"


text = table()
if "--check" in sys.argv:
    if not TABLE.exists() or TABLE.read_text() != text:
        print(f"{TABLE.relative_to(ROOT)} is out of date: run scripts/unicode_table.py")
        sys.exit(1)
else:
    TABLE.write_text(text)
