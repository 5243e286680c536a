#!/usr/bin/env python3
"""Byte-level BPE against PyPI `tokenizers`, id by id: tokenizers of every kind that `lrnn tokenize` reads, trained
here on the plays, over the plays, random strings and every code point. Also what it refuses, and why.
`make test` installs the package into .venv/tests; skipped where it cannot be imported. ORACLE_TOKENIZERS=FILE:FILE
adds published ones (a normalizer in them is taken out for both)."""
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, os.path.join(os.getcwd(), ".venv", "tests"))
try:
    from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers, trainers
except ImportError as error:
    print(f"skipped: {error}; scripts/setup.sh tests installs it")
    sys.exit(77)

LRNN = os.environ.get("LRNN", "build/lrnn")
PLAYS = [Path(f"tests/data/plays/{name}.txt").read_text() for name in ["macbeth", "tempest", "midsummer_nights_dream"]]
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN = CL100K.replace("{1,3}", "")


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def level(regex=False, prefix=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def trained(before, vocab=600, alphabet=True, added=(), special=("<s>", "<|endoftext|>"), **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = before
    tokenizer.train_from_iterator([PLAYS[0][:20000], "x = [0, 0, 1]\n    x[1], x[3] = 1234\r\n\n", "naïve 😀 'LL 'Ve"], trainers.BpeTrainer(
        vocab_size=vocab, show_progress=False, special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else []))
    tokenizer.add_tokens(list(added))
    return tokenizer


def sequence(*parts):
    return pre_tokenizers.Sequence(list(parts))


def plain(content, **how):
    return AddedToken(content, **{"normalized": False, **how})


def old_merges(text):
    """As files were written before 2024: "left right" instead of pairs."""
    file = json.loads(text)
    file["model"]["merges"] = [" ".join(pair) for pair in file["model"]["merges"]]
    return json.dumps(file)


SPACES = [plain(" " * n) for n in range(24, 1, -1)]  # GPT-NeoX
KINDS = {
    "GPT-2": (trained(level(True)), {}),
    "GPT-2 as a pattern": (trained(sequence(split(GPT2), level())), {"rewrite": old_merges}),
    "Llama 3": (trained(sequence(split(CL100K), level()), ignore_merges=True, vocab=1500), {}),
    "GPT-4": (trained(sequence(split(CL100K, "removed", True), level())), {}),
    "Qwen": (trained(sequence(split(QWEN), level())), {}),
    "GPT-NeoX": (trained(level(True), added=SPACES), {}),
    "StarCoder": (trained(sequence(pre_tokenizers.Digits(individual_digits=True), level(True))), {}),
    "Digits": (trained(sequence(pre_tokenizers.Digits(individual_digits=False), level(True))), {}),
    "prefix": (trained(level(True, prefix=True), added=SPACES), {"returns": False}),
    "no words": (trained(level(), vocab=900), {}),
    "unknown": (trained(level(True), alphabet=False, special=["<u>", "<s>"], unk_token="<u>"), {"returns": False}),
    "unknown, fused": (trained(level(True), alphabet=False, special=["<u>", "<s>"], unk_token="<u>", fuse_unk=True),
                       {"returns": False}),
    "added": (trained(level(True), added=[plain("  "), plain("\t\t"), plain("The"), plain("Theme", normalized=True),
                                          plain("é", single_word=True), plain("of", single_word=True),
                                          plain("<l>", lstrip=True), plain("<r>", rstrip=True),
                                          plain("<|end", special=True), plain("of the", normalized=True)]),
              {"returns": False}),
}


def strings(seed, count):
    draw = random.Random(seed)
    letters = [lambda: chr(draw.randrange(32, 127)), lambda: draw.choice("  \t\n\r\u00a0\u2003\u3000\u0085") * draw.randrange(1, 6),
               lambda: chr(draw.randrange(0xa0, 0x250)), lambda: chr(draw.randrange(0x4e00, 0x9fff)),
               lambda: chr(draw.randrange(0x1f300, 0x1f6ff)), lambda: chr(draw.randrange(0x300, 0x36f)),
               lambda: chr(draw.randrange(0, 32)), lambda: draw.choice("0123456789²½٣") * draw.randrange(1, 5),
               lambda: draw.choice(["'s", "'S", "'ll", "'LL", "'ſ", "'vE", "'d", "''", "<s>", "<l>", "<r>", "<|end",
                                    "The", "Theme", "of", "of the", "é", "<|endoftext|>"])]
    for _ in range(count):
        some = draw.sample(letters, draw.randrange(1, 5))
        yield "".join(draw.choice(some)() for _ in range(draw.randrange(1, 30)))


def every_code_point():
    """Beyond U+323AF nearly nothing is assigned: there a part will do, unless ORACLE_ALL is set."""
    step = 1 if os.environ.get("ORACLE_ALL") else 97
    points = [c for c in (*range(0x323B0), *range(0xE0000, 0xE01F0), *range(0x323B0, 0x110000, step))
              if not 0xD800 <= c < 0xE000]
    for at in range(0, len(points), 2048):
        yield "".join(f"a{chr(c)}1 {chr(c)}" for c in points[at:at + 2048])


def run(*arguments, data=b"", code=0):
    done = subprocess.run([LRNN, "tokenize", *arguments], input=data, capture_output=True)
    assert done.returncode == code, (arguments, done.returncode, done.stderr.decode())
    return done.stderr.decode() if code else done.stdout


def compare(name, tokenizer, texts, file, special=False, returns=True):
    tokenizer.encode_special_tokens = not special
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    out = run("encode", "--tokenizer", file, "--jsonl", *(["--special"] if special else []),
              *(["--check"] if returns else []), data=lines).decode().split("\n")[:-1]
    assert len(out) == len(texts), (name, len(out))
    for text, ids, encoding in zip(texts, out, tokenizer.encode_batch(texts, add_special_tokens=False)):
        if ids != " ".join(map(str, encoding.ids)):
            print(f"FAIL: {name}: {text[:200]!r}\n ours {ids[:300]}\n want {' '.join(map(str, encoding.ids))[:300]}")
            sys.exit(1)


def bytes_come_back(file):
    data = random.Random(5).randbytes(20000) + bytes(range(256)) + b"\xf0\x9f\x98 \xed\xa0\x80 \xc0\xaf end"
    ids = run("encode", "--tokenizer", file, "--check", data=data)
    assert run("decode", "--tokenizer", file, data=ids) == data


def refusals(folder, good):
    """Whatever would give other ids than the library is refused, and the node is named."""
    cases = [({"normalizer": {"type": "NFC"}}, "normalizer NFC"), ({"pre_tokenizer": {"type": "Metaspace"}}, "pre_tokenizer Metaspace"),
             ({"pre_tokenizer": None}, "without ByteLevel"), ({"decoder": {"type": "WordPiece"}}, "decoder WordPiece"),
             ({"post_processor": {"type": "BertProcessing"}}, "post_processor BertProcessing"),
             ({"model": {"type": "Unigram", "vocab": []}}, "model Unigram"), ({"model": {**good["model"], "dropout": .1}}, "dropout"),
             ({"model": {**good["model"], "byte_fallback": True}}, "byte_fallback"),
             ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a+"}, "behavior": "Isolated", "invert": False}}, "Split by \"a+\"")]
    broken = [("{", "not JSON"), ("[]", "no 'model'"), (json.dumps({**good, "added_tokens": [{"content": "q", "id": 70000}]}), "70000"),
              (json.dumps({**good, "model": {**good["model"], "merges": [["q", "zz"]]}}), "merge 1"),
              (json.dumps({**good, "model": {**good["model"], "vocab": {"a": 0, "b": 0}}}), "comes twice")]
    files = [(json.dumps({**good, **change}), words, "python -m lrnn prepare") for change, words in cases]
    files += [(text, words, "") for text, words in broken]

    def refused(number):
        text, words, hint = files[number]
        path = f"{folder}/refused-{number}.json"
        Path(path).write_text(text)
        said = run("encode", "--tokenizer", path, data=b"a", code=2)
        assert words in said and hint in said, (words, said)

    with ThreadPoolExecutor(4) as pool:  # a process takes its time to begin
        list(pool.map(refused, range(len(files))))
    Path(f"{folder}/broken.tiktoken").write_text("YQ== 0\n!!! 1\n")
    assert "line 2" in run("encode", "--tokenizer", f"{folder}/broken.tiktoken", data=b"a", code=2)


def tiktoken(folder, tokenizer):
    """The same merges by rank of what they make: ids in the order of the merges."""
    import base64
    tokenizer.encode_special_tokens = True
    vocab = {piece: i for piece, i in tokenizer.get_vocab().items() if i >= 2}
    table = {c: b for b, c in enumerate(byte_letters())}
    path = f"{folder}/plays.tiktoken"
    with open(path, "w") as out:
        for piece, i in sorted(vocab.items(), key=lambda x: x[1]):
            out.write(f"{base64.b64encode(bytes(table[c] for c in piece)).decode()} {i - 2}\n")
    text = PLAYS[0] + "".join(strings(9, 300))
    ids = run("encode", "--tokenizer", path, "--check", data=text.encode()).split()
    assert [int(i) + 2 for i in ids] == tokenizer.encode(text, add_special_tokens=False).ids


def byte_letters():
    shows = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(b) if b in shows else chr(next(others)) for b in range(256)]


def golden(folder):
    """What tokenizers 0.23.3 gave for three small texts."""
    texts = ["low lower lowest newer newest wider widest\n", "aaaa aaa aa banana bandana\n",
             "x = [0, 0, 1]\n    x[1], x[3] = x[3], x[1]\n"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = level(True)
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=290, min_frequency=2, special_tokens=["<s>", "<pad>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.save(f"{folder}/golden.json")
    for text, ids in [("lower newest\n", "262 260 83 276 263 200"), ("  x[3] = banana", "222 261 60 20 62 271 275 278"),
                      ("naïve 😀\t42", "79 66 129 109 87 70 222 174 255 248 224 199 21 19")]:
        got = run("encode", "--tokenizer", f"{folder}/golden.json", data=text.encode()).decode()
        assert got == ids + "\n", (text, got)


with tempfile.TemporaryDirectory() as folder:
    golden(folder)
    few, points = list(strings(1, 300)), list(every_code_point())
    for number, (name, (tokenizer, about)) in enumerate(KINDS.items()):
        file = f"{folder}/tokenizer.json"
        Path(file).write_text(about.get("rewrite", str)(tokenizer.to_str()))
        returns = about.get("returns", True)
        whole = name == "Llama 3"  # the others take a part, for time's sake
        texts = PLAYS[:3 if whole else 1] + (points if whole else points[number::64]) + list(strings(number, 2000 if whole else 200)) + ["", " ", "'"]
        compare(name, tokenizer, texts, file, returns=returns)
        if name in ("GPT-2", "prefix", "added"):
            compare(name + " with specials", tokenizer, few, file, special=True, returns=returns)
        if name in ("GPT-2", "Llama 3"):
            bytes_come_back(file)
    for file in filter(None, os.environ.get("ORACLE_TOKENIZERS", "").split(":")):
        changed = json.loads(Path(file).read_text())
        changed["normalizer"] = None
        Path(f"{folder}/tokenizer.json").write_text(json.dumps(changed))
        tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
        compare(file, tokenizer, PLAYS + points + list(strings(77, 10000)), f"{folder}/tokenizer.json")
    refusals(folder, json.loads(KINDS["GPT-2"][0].to_str()))
    tiktoken(folder, KINDS["GPT-2"][0])
print("the ids are those of PyPI tokenizers")
