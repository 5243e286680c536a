#!/usr/bin/env python3
"""`lrnn eval --task` against lm-evaluation-harness, document by document: a small model is trained and exported,
PyPI lm-eval asks the exported folder (transformers for attention, fla on lrnn's kernels for the delta rule), and every
log-likelihood, every greedy flag and every completion is the same. Contexts and continuations are made by the harness's
own task files, not by us. Skipped (exit 77) where lm-eval, fla or transformers cannot be imported.
"""

import importlib.util
import json
import logging
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import types
import warnings

from lib.harness import run, skip  # first: it skips where there is no torch
import torch
import yaml

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TQDM_DISABLE", "1")
warnings.simplefilter("ignore")
try:
    import fla  # noqa: F401
    import lm_eval
    import transformers
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
    from lm_eval.utils import apply_template
except ImportError as error:
    skip(f"lm-eval, fla or transformers cannot be imported here ({error})")
# The task files name these for their types and for other tasks; nothing here calls them.
for name in ("datasets", "sacrebleu", "evaluate", "dill"):
    if importlib.util.find_spec(name) is None:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].Dataset = object

import lrnn

logging.disable(logging.WARNING)
transformers.logging.set_verbosity_error()
PROGRAM = os.environ["LRNN"]
WORK = pathlib.Path(tempfile.mkdtemp(prefix="lrnn-harness-"))
PLAYS = pathlib.Path("tests/data/plays")
TASKS = pathlib.Path(lm_eval.__file__).parent / "tasks"
MAX_LENGTH = 96  # so that contexts are cut and texts take several windows
NEAR = 1e-3
MIXERS = {
    "llama": ["model.mixer={name: attention, heads: 2}"],
    "delta": ["model.mixer={name: delta_product, heads: 2, key_dim: 16, value_dim: 16, householders: 2, range: [-1, 1], "
              "conv: 4, forget_gate: true}"],
}


def command(*words):
    out = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, f"{words}: {out.returncode}\n{out.stdout}\n{out.stderr}"
    return out.stdout


def trained(name):
    """A model that has learnt enough to have opinions, as a run and as an exported folder."""
    out, exported = WORK / name, WORK / f"{name}-exported"
    command("train", "configs/lm/plays.yaml", *MIXERS[name], "model.layers=2", "model.width=32", "model.mlp.hidden=64",
            "train.steps=40", "train.batch=4", "train.warmup=5", "train.log_every=20", "task.train.length=64",
            "task.eval.length=64", "task.eval.samples=4", "train.threads=1", "--out", out, "--quiet")
    command("export", out, "-o", exported)
    return out, exported


# ------------------------------------------------------------------------------------------------- documents
def sentences():
    text = (PLAYS / "tempest.txt").read_text()
    return [" ".join(part.split()) for part in text.replace("!", ".").replace("?", ".").split(".")
            if 4 < len(part.split()) < 40]


def documents():
    """Twelve lines of every kind: words of a play in the fields of each dataset."""
    rng, all_of = random.Random(1), sentences()
    pick = lambda: rng.choice(all_of)  # noqa: E731
    long = lambda: " ".join(pick() for _ in range(12))  # noqa: E731
    some = range(12)
    gap = lambda s: " ".join([*s.split()[:2], "_", *s.split()[3:]])  # noqa: E731
    return {
        "piqa": [{"goal": pick(), "sol1": pick(), "sol2": "né " + pick(), "label": i % 2} for i in some],
        "hellaswag": [{"activity_label": "Sailing", "ctx_a": pick() + ". [header] x [title] " + pick(),
                       "ctx_b": pick().upper(), "endings": [" " + pick() + "  [step] on" for _ in range(4)],
                       "label": str(i % 4)} for i in some],
        "winogrande": [{"sentence": gap(pick()), "option1": "Ariel", "option2": "the king", "answer": str(1 + i % 2)}
                       for i in some],
        "arc_easy": [{"question": long() if i == 3 else pick(),
                      "choices": {"text": [pick() for _ in range(3 + i % 3)], "label": list("ABCDE")[:3 + i % 3]},
                      "answerKey": "ABC"[i % 3]} for i in some],
        "lambada_openai": [{"text": (long() if i % 4 == 0 else pick()) + "\n" + pick()} for i in some],
        "wikitext": [{"page": f" = {pick()} = \n \n {long() if i % 2 else pick()} , ( a @-@ b ) ; it 's \" so \" . \n"}
                     for i in some],
        "swde": [{"text": f" {long() if i % 4 == 0 else pick()} ", "value": rng.choice([" THE ", "e", "Prospero"])}
                 for i in some],
    }


# ------------------------------------------------------------------------------------------------- the harness
def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    out = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(out)
    return out


def template(folder, file):
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!function", lambda loader, node: None)
    return yaml.load((TASKS / folder / file).read_text(), Loader)


def by_template(folder, file):
    config = template(folder, file)

    def requests(doc):
        context = apply_template(config["doc_to_text"], doc)
        if "doc_to_choice" not in config:
            return [(context, apply_template(config["doc_to_target"], doc))]
        choices = config["doc_to_choice"]
        choices = doc[choices] if choices in doc else eval(apply_template(choices, doc))  # the harness: literal_eval
        return [(context, " " + choice) for choice in choices]

    return requests


def hellaswag(doc):
    utils = module(TASKS / "hellaswag/utils.py")

    class Rows(list):
        def map(self, change):
            return [change(row) for row in self]

    made = utils.process_docs(Rows([doc]))[0]
    return [(made["query"], " " + choice) for choice in made["choices"]]


def winogrande(doc):
    task = module(TASKS / "winogrande/preprocess_winogrande.py")
    return [(context, " " + task.doc_to_target(doc)) for context in task.doc_to_choice(doc)]


REQUESTS = {"piqa": by_template("piqa", "piqa.yaml"), "hellaswag": hellaswag, "winogrande": winogrande,
            "arc_easy": by_template("arc", "arc_easy.yaml"),
            "lambada_openai": by_template("lambada", "lambada_openai.yaml")}


def instances(kind, arguments):
    return [Instance(request_type=kind, doc={}, arguments=one, idx=i) for i, one in enumerate(arguments)]


def theirs(lm, name, docs):
    """Per document: log-likelihoods with greedy flags, or the completion."""
    if name == "wikitext":
        pages = module(TASKS / "wikitext/preprocess_wikitext.py")
        return lm.loglikelihood_rolling(instances("loglikelihood_rolling",
                                                  [(pages.wikitext_detokenizer(doc),) for doc in docs]))
    if name == "swde":
        task = module(TASKS / "swde/task.py")
        asked = [task.SWDE.construct_requests(None, doc, task.SWDE.doc_to_text(None, doc))[0] for doc in docs]
        said = lm.generate_until(asked)
        return [(text, task.contains_score(text, [task.SWDE.doc_to_target(None, doc)]))
                for text, doc in zip(said, docs)]
    pairs = [REQUESTS[name](doc) for doc in docs]
    said = iter(lm.loglikelihood(instances("loglikelihood", [pair for of in pairs for pair in of])))
    return [[next(said) for _ in of] for of in pairs]


# ------------------------------------------------------------------------------------------------- checks
def compare(name, ours, want):
    worst = 0.0
    for mine, other in zip(ours, want, strict=True):
        if name == "swde":
            assert mine["text"] == other[0] and mine["contains"] == bool(other[1]), (mine, other)
            continue
        others = [other] if name == "wikitext" else [one[0] for one in other]
        for a, b in zip(mine["loglikelihoods"], others, strict=True):
            worst = max(worst, abs(a - b))
        if "greedy" in mine:
            assert mine["greedy"] == other[0][1], (mine, other)
    assert worst <= NEAR, f"{name}: off by {worst}"
    return worst


def ask(run_folder, name, docs, bos):
    file, out = WORK / f"{name}.jsonl", WORK / "documents.jsonl"
    file.write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    more = ["--format", "lambada"] if name == "lambada_openai" else []
    said = json.loads(command("eval", run_folder, "--task", file, *more, "--bos", bos, "--max-length", MAX_LENGTH,
                              "--precision", "float32", "-o", out, "--json"))
    return said["tasks"][0], [json.loads(line) for line in out.read_text().splitlines()]


def check_tokenizer():
    """The exported tokenizer.json, in transformers, gives the ids of the run's own, leading spaces and all."""
    exported = trained("delta")[1]
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    texts = ["", " a", "a  b", "\n\n x", "\tTab", "né 日本 12345", " ", (PLAYS / "macbeth.txt").read_text()[:20000]]
    for text in texts:
        (WORK / "text").write_text(text)
        ids = command("tokenize", "encode", "--tokenizer", WORK / "delta/tokenizer", WORK / "text") if text else ""
        got = tokenizer.encode(text, add_special_tokens=False)
        assert got == [int(x) for x in ids.split()], (text[:20], got[:9], ids[:40])
        assert tokenizer.decode(got) == text, text[:20]


def check_documents():
    lrnn.fla.enable()
    docs = documents()
    for kind in MIXERS:
        here, exported = (WORK / kind, WORK / f"{kind}-exported") if (WORK / kind).exists() else trained(kind)
        for bos in ("never", "always") if kind == "llama" else ("never",):
            lm = HFLM(pretrained=str(exported), device="cpu", dtype="float32", batch_size=1, max_length=MAX_LENGTH,
                      add_bos_token=bos == "always")
            off = {}
            for name in docs:
                # Where a tokenizer adds BOS by itself the harness puts a second one before a text to be rolled over.
                if bos == "always" and name == "wikitext":
                    continue
                score, ours = ask(here, name, docs[name], bos)
                assert score["documents"] == len(docs[name]) and score["name"] == name
                off[name] = compare(name, ours, theirs(lm, name, docs[name]))
            print(kind, bos, {name: f"{x:.1e}" for name, x in off.items()})


try:
    with torch.inference_mode():
        run(globals())
finally:
    shutil.rmtree(WORK)
