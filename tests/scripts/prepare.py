#!/usr/bin/env python3
"""`lrnn prepare`: shards that an llm.c-style reader reads, the same bytes for every number of threads and after
kill -9, and a sentence for whatever is wrong with the input or the folder."""
import gzip
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LRNN = os.environ.get("LRNN", "build/lrnn")
PLAYS = [str(path) for path in sorted(Path("tests/data/plays").glob("*.txt"))]


def run(*arguments, data=None, code=0, words=""):
    done = subprocess.run([LRNN, *map(str, arguments)], input=data, capture_output=True)
    said = done.stderr.decode()
    assert done.returncode == code, (arguments, done.returncode, said)
    assert words in said, (arguments, words, said)
    return done.stdout


def read_shard(path):
    """As llm.c's data loader does."""
    data = Path(path).read_bytes()
    magic, version, tokens = struct.unpack("<3i", data[:12])
    width, letter = {(20240520, 1): (2, "H"), (20240801, 7): (4, "I")}[magic, version]
    assert len(data) == 1024 + width * tokens
    return struct.unpack(f"<{tokens}{letter}", data[1024:])


def read_documents(folder):
    """[(split, ids, source bytes)], by manifest and index."""
    out = []
    manifest = json.loads(Path(folder, "manifest.json").read_text())
    for shard in manifest["shards"]:
        ids = read_shard(f"{folder}/{shard['file']}")
        assert len(ids) == shard["tokens"]
        index = Path(folder, shard["file"].replace(".bin", ".idx")).read_bytes()
        entries = [struct.unpack("<QI", index[at:at + 12]) for at in range(0, len(index), 12)]
        ends = [first for first, _ in entries[1:]] + [len(ids)]
        out += [(shard["split"], ids[first:end], size) for (first, size), end in zip(entries, ends)]
    assert len(out) == manifest["documents"] and sum(len(ids) for _, ids, _ in out) == manifest["tokens"]
    assert sum(size for _, _, size in out) == manifest["source_bytes"]
    return manifest, out


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.name != "lock"}


def same(a, b):
    a, b = contents(a), contents(b)
    assert a.keys() == b.keys(), (a.keys(), b.keys())
    for name in a:
        assert a[name] == b[name], f"{name} differs"


def corpus(path, count, seed):
    draw = random.Random(seed)
    words = Path(PLAYS[0]).read_text().split()
    texts = ["", "naïve 😀 ▁"] + [" ".join(draw.choices(words, k=draw.randrange(1, 400))) for _ in range(count - 2)]
    Path(path).write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in enumerate(texts)))
    return texts


def plain(work, tok):
    texts = corpus(f"{work}/a.jsonl", 600, 1)
    common = ["--tokenizer", tok, "--hold-out", .1, "--shard-tokens", 20000, "--domain", "plays"]
    run("prepare", f"{work}/a.jsonl", *common, "-o", f"{work}/one", "--threads", 1)
    run("prepare", f"{work}/a.jsonl", *common, "-o", f"{work}/many", "--threads", 8)
    run("prepare", "-", *common, "-o", f"{work}/pipe", data=Path(f"{work}/a.jsonl").read_bytes())
    Path(f"{work}/b.jsonl.gz").write_bytes(gzip.compress(Path(f"{work}/a.jsonl").read_bytes()))
    run("prepare", f"{work}/b.jsonl.gz", *common, "-o", f"{work}/packed")
    for other in ["many", "pipe", "packed"]:
        same(f"{work}/one", f"{work}/{other}")
    manifest, documents = read_documents(f"{work}/one")
    assert list(manifest) == ["version", "tokenizer", "vocabulary", "bos", "eos", "domain", "tokens", "documents",
                              "source_bytes", "shards"]
    assert (manifest["bos"], manifest["eos"], manifest["domain"], manifest["vocabulary"]) == (1, 2, "plays", 512)
    lines = "".join(json.dumps({"text": t}) + "\n" for t in texts).encode()
    want = [tuple([1, *map(int, line.split())])
            for line in run("tokenize", "encode", "--jsonl", "--tokenizer", tok, data=lines).decode().split("\n")[:-1]]
    assert sorted(ids for _, ids, _ in documents) == sorted(want)
    train = [ids for split, ids, _ in documents if split == "train"]
    places = iter(range(len(want)))
    assert all(any(want[i] == ids for i in places) for ids in train), "documents are not in the order of the input"
    assert 30 < len(documents) - len(train) < 100 and len(manifest["shards"]) > 4
    # The same command again changes nothing; a finished folder takes nothing more.
    before = contents(f"{work}/one")
    run("prepare", f"{work}/a.jsonl", *common, "-o", f"{work}/one")
    assert contents(f"{work}/one") == before
    run("prepare", "--verify", "-o", f"{work}/one")
    with open(f"{work}/a.jsonl", "a") as out:
        out.write('{"text": "more"}\n')
    run("prepare", f"{work}/a.jsonl", *common, "-o", f"{work}/one", code=2, words="more documents")
    return common


def killed(work, common):
    """kill -9 at any moment, again and again."""
    corpus(f"{work}/k.jsonl", 6000, 2)
    run("prepare", f"{work}/k.jsonl", *common, "-o", f"{work}/whole")
    draw, kills = random.Random(1), 0
    longest = .2
    for _ in range(60):
        process = subprocess.Popen([LRNN, "prepare", f"{work}/k.jsonl", *map(str, common), "-o", f"{work}/killed", "--threads", "2"],
                                   stdout=subprocess.DEVNULL)
        # From the moment it writes, so that the loading of libraries takes no part.
        start = time.time()
        while not os.path.exists(f"{work}/killed/lock") and process.poll() is None and time.time() - start < 60:
            time.sleep(.01)
        try:
            code = process.wait(draw.random() * longest)
            assert code == 0, f"it ended with {code}"
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            longest *= 1.2
    same(f"{work}/whole", f"{work}/killed")
    assert not list(Path(f"{work}/killed").glob("*.partial"))
    return kills


def wrong(work, tok, common):
    bad = ['{"text": "a"}', '{"text": "b"}', '{"text": "c', '{"text": "d"}']
    Path(f"{work}/bad.jsonl").write_text("\n".join(bad))
    arguments = [f"{work}/bad.jsonl", *common, "-o", f"{work}/bad"]
    run("prepare", *arguments, code=2, words="bad.jsonl, line 3: this is not JSON")
    bad[2] = '{"text": "c"}'
    Path(f"{work}/bad.jsonl").write_text("\n".join(bad))
    run("prepare", *arguments)  # goes on with the line mended
    Path(f"{work}/good.jsonl").write_text("\n".join(bad))
    run("prepare", f"{work}/good.jsonl", *common, "-o", f"{work}/good")
    same(f"{work}/bad", f"{work}/good")
    Path(f"{work}/bytes.jsonl").write_bytes(b'{"text": "a"}\n{"text": "\xff"}\n')
    run("prepare", f"{work}/bytes.jsonl", *common, "-o", f"{work}/bytes", code=2, words="bytes.jsonl, line 2")
    Path(f"{work}/field.jsonl").write_text('{"content": "a"}\n')
    run("prepare", f"{work}/field.jsonl", *common, "-o", f"{work}/field", code=2, words="there is no 'text'")
    # Broken UTF-8 in a text comes back.
    Path(f"{work}/raw.txt").write_bytes(b"a\xff\xe2\x96 \xed\xa0\x80b")
    run("prepare", f"{work}/raw.txt", "--tokenizer", tok, "-o", f"{work}/raw", "--hold-out", 0, "--bos", "none", "--eos", "none")
    ids = " ".join(map(str, read_shard(f"{work}/raw/train-00000.bin"))).encode()
    assert run("tokenize", "decode", "--tokenizer", f"{work}/raw", data=ids) == Path(f"{work}/raw.txt").read_bytes()
    # A document longer than memory.
    with open(f"{work}/long.txt", "wb") as out:
        out.truncate(10 ** 11)
    run("prepare", f"{work}/long.txt", *common, "-o", f"{work}/long", code=2, words="would not fit into memory")
    # Another tokenizer, another setting, files that have changed.
    run("tokenize", "train", *PLAYS, "--vocab", 500, "-o", f"{work}/other")
    swapped = [f"{work}/other" if word == tok else word for word in common]
    run("prepare", f"{work}/good.jsonl", *swapped, "-o", f"{work}/good", code=2, words="another tokenizer")
    run("prepare", f"{work}/good.jsonl", *common, "--seed", 1, "-o", f"{work}/good", code=2, words="another --seed")
    Path(f"{work}/good.jsonl").write_text("\n".join(['{"text": "q"}'] + bad[1:]))
    run("prepare", f"{work}/good.jsonl", *common, "-o", f"{work}/good", code=2, words="are not those")
    run("prepare", *PLAYS, *common, "--shard-tokens", 2 ** 31, "-o", f"{work}/x", code=2, words="--shard-tokens")
    run("prepare", *PLAYS, *common, "--bos", 512, "-o", f"{work}/x", code=2, words="beyond the vocabulary")


def damaged(work):
    """A bit, a length, a header, an id: each is named."""
    shard = Path(f"{work}/whole/train-00001.bin")
    whole = shard.read_bytes()

    def verify(data, words, flag=("--verify",)):
        shard.write_bytes(data)
        run("prepare", *flag, "-o", f"{work}/whole", code=2, words=words)
        shard.write_bytes(whole)

    verify(whole[:-2], "train-00001.bin is cut short")
    verify(whole[:5], "train-00001.bin is cut short")
    verify(whole + b"aa", "train-00001.bin is damaged")
    verify(b"\0" * 4 + whole[4:], "train-00001.bin is no shard")
    verify(whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:], "train-00001.bin is damaged: its sha256")
    verify(whole[:2000] + b"\xff\xff" + whole[2002:], "train-00001.bin: token 488 has the id 65535")
    index = Path(f"{work}/whole/train-00001.idx")
    entries = index.read_bytes()
    index.write_bytes(entries[:-1])
    run("prepare", "--verify", "-o", f"{work}/whole", code=2, words="train-00001.idx is damaged")
    for lost in (entries[:-12], entries[:-4] + b"\0\0\0\0"):  # a document, its bytes
        index.write_bytes(lost)
        run("prepare", "--verify", "-o", f"{work}/whole", code=2, words="the manifest of")
    index.write_bytes(entries)
    run("prepare", "--verify", "-o", f"{work}/whole")


def held_out(work, tok):
    run("prepare", *PLAYS[:2], "--eval", PLAYS[2], "--tokenizer", tok, "-o", f"{work}/plays")
    _, documents = read_documents(f"{work}/plays")
    assert [(split, size) for split, _, size in documents] == [
        ("train", 103427), ("train", 96249), ("eval", 98439)]


with tempfile.TemporaryDirectory() as work:
    tok = f"{work}/tok"
    run("tokenize", "train", *PLAYS, "--vocab", 512, "-o", tok)
    common = plain(work, tok)
    kills = killed(work, common)
    wrong(work, tok, common)
    damaged(work)
    held_out(work, tok)
print(f"same bytes with every number of threads and after {kills} kills")
sys.exit(0 if kills >= 2 else "too few kills to mean anything")
