#!/usr/bin/env python3
"""SentencePiece models in `lrnn tokenize` against PyPI `sentencepiece`: Mistral's (PyPI `mistral-common`) with ids that
were written down, and models that `lrnn tokenize train` makes, over the plays and random strings. Skipped where the
packages cannot be imported; `make test` installs them into .venv/tests."""
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = os.path.join(os.getcwd(), ".venv", "tests")
sys.path.insert(0, TESTS)
try:
    import sentencepiece
except ImportError as error:
    print(f"skipped: {error}; scripts/setup.sh tests installs it")
    sys.exit(77)

LRNN = os.environ.get("LRNN", "build/lrnn")
MISTRAL = TESTS + "/mistral_common/data/tokenizer.model.v1"
PLAYS = [str(path) for path in sorted(Path("tests/data/plays").glob("*.txt"))]
TEXTS = [Path(path).read_text() for path in PLAYS] + [Path("tests/scripts/tokenizers_oracle.py").read_text()]
GOLDEN = {"Hello world": "22557 1526", " Hello  world\n": "28705 22557 28705 1526 13", "1234": "28705 28740 28750 28770 28781",
          "def f(x):\n    return x\n": "801 285 28732 28744 1329 13 2287 604 1318 13", "  ": "2287",
          "é\u2028𝔘": "1233 229 131 171 243 160 151 155", "a\tb\r\n": "264 12 28726 28801 13"}


def run(*arguments, data=b"", code=0):
    done = subprocess.run([LRNN, "tokenize", *arguments], input=data, capture_output=True)
    assert done.returncode == code, (arguments, done.returncode, done.stderr.decode())
    return done.stderr.decode() if code else done.stdout


def encode(model, texts):
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    return run("encode", "--tokenizer", model, "--jsonl", "--check", data=lines).decode().split("\n")[:-1]


def strings(count):
    draw = random.Random(3)
    kinds = [lambda: chr(draw.randrange(32, 127)), lambda: " " * draw.randrange(1, 9), lambda: chr(draw.randrange(0xa0, 0x250)),
             lambda: chr(draw.randrange(0x4e00, 0x9fff)), lambda: chr(draw.randrange(0x1f300, 0x1f6ff)),
             lambda: chr(draw.randrange(1, 32)), lambda: draw.choice(["<s>", "</s>", "<unk>", "<0x0A>", "the ", "\ufeff"])]
    for _ in range(count):
        some = draw.sample(kinds, draw.randrange(1, 4))
        yield "".join(draw.choice(some)() for _ in range(draw.randrange(1, 40)))


def compare(model, texts):
    library = sentencepiece.SentencePieceProcessor(model_file=model)
    for text, ids in zip(texts, encode(model, texts)):
        want = " ".join(map(str, library.encode(text)))
        assert ids == want, (model, text[:200], ids[:200], want[:200])


def what_the_library_loses(model):
    data = random.Random(4).randbytes(5000) + "▁a ▁ b▁▁ ▁".encode() + b" \xff \xe2\x96"
    ids = run("encode", "--tokenizer", model, "--check", data=data)
    assert run("decode", "--tokenizer", model, data=ids) == data


with tempfile.TemporaryDirectory() as work:
    if os.path.exists(MISTRAL):
        assert encode(MISTRAL, list(GOLDEN)) == list(GOLDEN.values())
        assert len(encode(MISTRAL, [Path("tests/data/plays/macbeth.txt").read_text()])[0].split()) == 34513
        compare(MISTRAL, TEXTS + list(strings(1500)))
        what_the_library_loses(MISTRAL)
    else:
        print("without Mistral's model: mistral-common is missing")
    for kind in ["bpe", "unigram"]:
        for name in ["a", "b"]:
            run("train", *PLAYS, "--vocab", "700", "--kind", kind, "-o", f"{work}/{kind}-{name}")
        model = f"{work}/{kind}-a/tokenizer.model"
        assert Path(model).read_bytes() == Path(f"{work}/{kind}-b/tokenizer.model").read_bytes(), "not the same bytes twice"
        assert work.encode() not in Path(model).read_bytes()
        # Unigram adds scores along the text: versions of the library differ where two ways have the same sum.
        compare(model, TEXTS + list(strings(500)) if kind == "bpe" else TEXTS[0].splitlines())
        what_the_library_loses(model)
    # Those that would lose text.
    for name, settings, words in [("nfkc", {}, "normalises texts (nmt_nfkc)"),
                                  ("spaces", {"normalization_rule_name": "identity"}, "drops extra spaces")]:
        sentencepiece.SentencePieceTrainer.train(input=PLAYS[0], model_prefix=f"{work}/{name}", vocab_size=300,
                                                 model_type="bpe", minloglevel=2, **settings)
        said = run("encode", "--tokenizer", f"{work}/{name}.model", data=b"a", code=2)
        assert words in said and "python -m lrnn prepare" in said, said
    sentencepiece.SentencePieceTrainer.train(input=PLAYS[0], model_prefix=f"{work}/no_bytes", vocab_size=300, model_type="bpe",
                                             normalization_rule_name="identity", remove_extra_whitespaces=False, minloglevel=2)
    assert "would be lost" in run("encode", "--tokenizer", f"{work}/no_bytes.model", data="漢".encode(), code=2)
    whole = Path(model).read_bytes()
    for size in [0, 1, 100, len(whole) - 7]:
        Path(f"{work}/cut.model").write_bytes(whole[:size])
        run("encode", "--tokenizer", f"{work}/cut.model", data=b"a", code=2)
print("the ids are those of PyPI sentencepiece")
