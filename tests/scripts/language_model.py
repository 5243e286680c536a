"""A small language model from the outside: trained, killed, continued, evaluated, asked, generating."""
import csv
import json
import math
import os
import random
import signal
import shutil
import subprocess
import sys
import tempfile
import time

LRNN = os.environ["LRNN"]
HERE = tempfile.mkdtemp(prefix="lrnn-lm-")
os.environ["XDG_CACHE_HOME"] = HERE + "/cache"
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
SMALL = ["configs/lm/plays.yaml", "model.layers=1", "model.width=32", "model.mlp.hidden=64", "model.mixer.key_dim=16",
         "model.mixer.value_dim=16", "train.batch=4", "train.log_every=5", "task.train.length=64", "task.eval.length=64",
         "task.eval.samples=8", "train.warmup=5", "train.threads=1"]


def lrnn(*words, code=0, stdin=None):
    done = subprocess.run([LRNN, *words], capture_output=True, input=stdin)
    assert done.returncode == code, (words, done.returncode, done.stdout[-500:], done.stderr[-500:])
    return done.stdout if code == 0 else done.stderr.decode()


def answer(*words, **more):
    return json.loads(lrnn(*words, "--json", **more))


def train(out, *more, **how):
    return lrnn("train", *SMALL, "--out", out, "--quiet", *more, **how)


def lines(file):
    with open(file) as f:
        return [json.loads(line) for line in f]


def same_after_kill(out, whole):
    """Killed at a bad moment, and again: the same bytes in the end."""
    steps = ["train.steps=60", "train.eval_every=20", "train.checkpoint_every=7"]
    train(whole, *steps)
    for wait in (6, 12):
        run = subprocess.Popen([LRNN, "train", *SMALL, *steps, "--out", out, "--quiet", "--resume"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begin = time.time()
        while run.poll() is None and time.time() - begin < 120:
            time.sleep(0.01)
            if os.path.exists(out + "/metrics.jsonl") and len(lines(out + "/metrics.jsonl")) >= wait // 3:
                break
        run.send_signal(signal.SIGKILL)
        run.wait()
    train(out, *steps, "--resume")
    for name in ("metrics.jsonl", "checkpoints/step-00000060/model.safetensors"):
        with open(f"{whole}/{name}", "rb") as a, open(f"{out}/{name}", "rb") as b:
            assert a.read() == b.read(), name


def metrics_and_curves(run):
    of = lines(run + "/metrics.jsonl")
    for line in of:
        assert {"loss", "lr", "grad_norm"} <= line.keys() if line["kind"] == "train" else "bits_per_byte" in line, line
        assert "scaled" not in line
    last = [line for line in of if line["kind"] == "eval"][-1]
    said = answer("eval", run)
    assert said["loss"] == last["loss"], (said, last)
    domain = said["domains"][0]
    assert domain["name"] == "plays" and domain["targets"] == 8 * 63
    assert abs(domain["bits_per_byte"] - domain["loss"] * domain["targets"] / math.log(2) / domain["bytes"]) < 1e-9
    assert abs(domain["perplexity"] - math.exp(domain["loss"])) < 1e-6
    state = json.load(open(run + "/checkpoints/best/state.json"))
    assert state["best_loss"] == min(line["loss"] for line in of if line["kind"] == "eval")
    text = lrnn("curves", run).decode()
    assert "bits per byte" in text and "scaled" not in text
    # Below a unigram model of the training tokens.
    assert json.load(open(run + "/result.json"))["evaluation"]["loss"] < 6.5


def positions(run):
    """Pieces with a carried state are the whole; the table fits the loss."""
    said = answer("eval", run, "--data", "tests/data/plays", "--lengths", "6000")
    rows = list(csv.DictReader(open(run + "/eval/position.csv")))
    assert list(rows[0]) == ["domain", "position", "loss", "smoothed", "running_perplexity", "accuracy", "sequences"]
    assert len(rows) == 5999 and rows[-1]["position"] == "5999"
    mean = sum(float(row["loss"]) for row in rows) / len(rows)
    assert abs(mean - said["loss"]) < 1e-5
    assert abs(math.log(float(rows[-1]["running_perplexity"])) - said["loss"]) < 1e-5
    octaves = list(csv.DictReader(open(run + "/eval/octave.csv")))
    assert list(octaves[0]) == ["domain", "sequence", "from", "to", "loss", "targets"]
    assert [(row["from"], row["to"]) for row in octaves if row["sequence"] == "0"][-2:] == [("2048", "4095"), ("4096", "6000")]
    nats = sum(float(row["loss"]) * int(row["targets"]) for row in octaves)
    assert abs(nats / sum(int(row["targets"]) for row in octaves) - said["loss"]) < 1e-5
    # The first window, read whole, is the first piece of a longer one.
    answer("eval", run, "--data", "tests/data/plays", "--lengths", "4000", "--samples", "1")
    short = list(csv.DictReader(open(run + "/eval/position.csv")))
    answer("eval", run, "--data", "tests/data/plays", "--lengths", "6000", "--samples", "1")
    for a, b in zip(short, csv.DictReader(open(run + "/eval/position.csv"))):
        assert abs(float(a["loss"]) - float(b["loss"])) < 1e-4, (a, b)
    assert os.path.exists(run + "/figures/position.svg")
    assert "one length" in lrnn("eval", run, "--lengths", "10:20", code=2)


def parity():
    """Every other token is always the same: the curve by position shows which."""
    draw = random.Random(1)
    for name, count in (("parity", 400), ("parity.eval", 40)):
        with open(f"{HERE}/{name}.jsonl", "w") as f:
            for _ in range(count):
                ids = " ".join(f"3 {draw.randrange(4, 20)}" for _ in range(32))
                f.write(json.dumps({"text": "x", "ids": ids}) + "\n")
    lrnn("prepare", HERE + "/parity.jsonl", "--eval", HERE + "/parity.eval.jsonl", "--ids", "ids", "--tokenizer",
         "tests/data/plays/tokenizer.model", "--vocabulary", "1024", "--bos", "none", "--eos", "none", "-o",
         HERE + "/parity", "--quiet")
    run = HERE + "/parity-run"
    train(run, f"task.data={HERE}/parity", "train.steps=60", "train.batch=8", "train.lr=0.01")
    lrnn("eval", run)
    for row in csv.DictReader(open(run + "/eval/position.csv")):
        odd = int(row["position"]) % 2 == 1
        assert (float(row["loss"]) > 2 if odd else float(row["loss"]) < 0.1), row


def rank(run):
    """Every state once, within what a matrix of that size can have."""
    said = answer("eval", run, "--rank", "--lengths", "700")
    rows = list(csv.DictReader(open(run + "/eval/rank.csv")))
    assert list(rows[0]) == ["domain", "layer", "head", "position", "step", "rank", "sequences"]
    heads = said["domains"][0]["heads"]
    assert len(rows) == 700 * len(heads) and rows[699]["position"] == "699" and float(rows[0]["rank"]) == 0
    for i, head in enumerate(heads):
        ranks = [float(row["rank"]) for row in rows[700 * i:700 * i + 700]]
        assert abs(sum(ranks) / 700 - head["mean"]) < 1e-4 and abs(ranks[-1] - head["end"]) < 1e-4, head
        assert abs(ranks[64] - head["at_training_length"]) < 1e-4 and 1 <= head["largest"] <= head["most"] == 16, head
    assert os.path.exists(run + "/figures/rank.svg")
    # All that is held out, where it is less than 16,384 tokens; a choice of the same numbers.
    some = answer("eval", run, "--rank", "--every", "50")
    assert 8000 < some["length"] < 16384
    few = list(csv.DictReader(open(run + "/eval/rank.csv")))
    assert few[3]["position"] == "150" and few[3]["rank"] == rows[150]["rank"], few[3]
    assert "one length" in lrnn("eval", run, "--rank", "--lengths", "10:20", code=2)
    assert "--rank" in lrnn("eval", run, "--every", "3", code=2)


def generation(run):
    same = [lrnn("generate", run, "--prompt", "MACBETH", "--tokens", "40", "--seed", seed) for seed in ("3", "3", "4")]
    assert same[0] == same[1] != same[2]
    said = answer("generate", run, "--prompt", "MACBETH", "--tokens", "40", "--seed", "3")["sequences"][0]
    assert said["text"] + "\n" == same[0].decode() and len(said["ids"]) <= 40
    assert lrnn("generate", run, "-", "--tokens", "40", "--seed", "3", stdin=b"MACBETH") == same[0]
    with open(HERE + "/prompt", "w") as f:
        f.write("MACBETH")
    assert lrnn("generate", run, "--file", HERE + "/prompt", "--tokens", "40", "--seed", "3") == same[0]
    assert lrnn("generate", run, "--prompt", "MACBETH", "--tokens", "40", "--seed", "3", "--echo") == b"MACBETH" + same[0]
    # Greedy does not depend on the seed; a text it has made, fed again, is continued the same way.
    greedy = [answer("generate", run, "--prompt", "The", "--tokens", "30", "--temperature", "0", "--seed", seed)
              for seed in ("1", "2")]
    assert greedy[0]["sequences"] == greedy[1]["sequences"]
    both = answer("generate", run, "--prompt", "The", "--tokens", "30", "--batch", "3")["sequences"]
    assert len(both) == 3 and both[0]["ids"] != both[1]["ids"]
    text = said["text"]
    stop = text[len(text) // 2:len(text) // 2 + 3]
    cut = lrnn("generate", run, "--prompt", "MACBETH", "--tokens", "40", "--seed", "3", "--stop", stop).decode()
    assert cut == text[:text.index(stop)] + "\n", (cut, text, stop)
    assert lrnn("generate", run, "--prompt", "x", "--tokens", "0") == b"\n"
    # A prompt beyond one piece.
    with open(HERE + "/long", "w") as f:
        f.write(open("tests/data/plays/macbeth.txt").read()[:15000])
    assert len(answer("generate", run, "--file", HERE + "/long", "--tokens", "3")["prompt"]) > 4096
    going = subprocess.Popen([LRNN, "generate", run, "--tokens", "10000000"], stdout=subprocess.PIPE)
    going.stdout.read(20)
    going.send_signal(signal.SIGINT)
    going.stdout.read()
    assert going.wait() == 130
    assert "neither" in lrnn("generate", run, "what", code=2)
    assert "top-p" in lrnn("generate", run, "--top-p", "2", code=2)


def questions(run):
    def ask(name, rows, *more, **how):
        with open(f"{HERE}/{name}.jsonl", "w") as f:
            f.writelines((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
        return (answer if how.get("code", 0) == 0 else lrnn)("eval", run, "--task", f"{HERE}/{name}.jsonl", *more, **how)

    text = open("tests/data/plays/tempest.txt").read()
    one = ask("roll", [{"text": text[:3000]}, {"text": text[3000:5000]}], "--max-length", "50",
              "-o", HERE + "/documents.jsonl")["tasks"][0]
    assert one["name"] == "roll" and one["documents"] == 2 and "acc" not in one
    each = lines(HERE + "/documents.jsonl")
    total = sum(line["loglikelihoods"][0] for line in each)
    assert abs(one["bits_per_byte"] + total / math.log(2) / 5000) < 1e-9
    # The sum over continuations of a cut text is that of all of it, where the cut is one of tokens.
    cloze = ask("cloze", [{"context": "ACT I.", "target": "\n\n"}, {"context": "the", "target": " king"}])["tasks"][0]
    assert {"acc", "ppl", "stderr"} <= cloze.keys() and cloze["documents"] == 2
    rows = [{"context": "What is", "choices": [" the", " zqx zqx zqx"], "gold": g} for g in (0, 0, 1)]
    choice = ask("choice", rows, "-o", HERE + "/documents.jsonl")["tasks"][0]
    each = lines(HERE + "/documents.jsonl")
    best = [line["loglikelihoods"].index(max(line["loglikelihoods"])) for line in each]
    assert choice["acc"] == sum(b == row["gold"] for b, row in zip(best, rows)) / 3
    p = choice["acc"]
    assert abs(choice["stderr"] - math.sqrt(p * (1 - p) / 2)) < 1e-12
    # Alone or with others of other lengths: the same.
    alone = ask("alone", rows[:1], "-o", HERE + "/documents.jsonl")
    assert alone["tasks"][0]["stderr"] is None
    for a, b in zip(lines(HERE + "/documents.jsonl")[0]["loglikelihoods"], each[0]["loglikelihoods"]):
        assert abs(a - b) < 1e-4
    # What a completion says is what `generate` says; the line ends it.
    prompt = "What is the"
    wanted = answer("generate", run, "--prompt", prompt, "--tokens", "48", "--temperature", "0", "--stop", "\n")
    said = wanted["sequences"][0]["text"]
    told = ask("complete", [{"context": prompt, "contains": said.upper()}, {"context": prompt, "contains": "@@"}],
               "--bos", "always", "-o", HERE + "/documents.jsonl")["tasks"][0]
    assert told["acc"] == 0.5 and "ppl" not in told, told
    assert [line["text"] for line in lines(HERE + "/documents.jsonl")] == [said, said]
    page = {"page": " = A page = \n \n He said , \" so \" ( and so ) . \n"}
    assert {"ppl", "byte_ppl", "bits_per_byte"} <= ask("wikitext", [page])["tasks"][0].keys()
    assert lines(HERE + "/wikitext.jsonl") == [page]
    kept = json.load(open(run + "/eval/tasks.json"))
    assert {task["name"] for task in kept["tasks"]} >= {"wikitext"}, kept
    assert "line 2" in ask("bad", [rows[0], "{"], code=2)
    assert "empty" in ask("none", [], code=2)


def data(run):
    """Shards of lrnn prepare, two domains, another corpus on resume, a damaged one."""
    plays = "tests/data/plays"
    for name in ("macbeth", "tempest"):
        lrnn("prepare", f"{plays}/{name}.txt", "--eval", f"{plays}/midsummer_nights_dream.txt", "--tokenizer", plays,
             "-o", f"{HERE}/{name}", "--domain", name, "--quiet")
    two = HERE + "/two"
    train(two, f"task.data=[{{path: {HERE}/macbeth, weight: 3}}, {HERE}/tempest]", "train.steps=10")
    said = answer("eval", two)
    assert [d["name"] for d in said["domains"]] == ["macbeth", "tempest"]
    assert said["domains"][0]["targets"] == said["domains"][1]["targets"] == 4 * 63
    assert lines(two + "/metrics.jsonl")[-1]["domains"].keys() == {"macbeth", "tempest"}
    one = HERE + "/one"
    train(one, f"task.data={HERE}/macbeth", "train.steps=5")
    shutil.move(HERE + "/macbeth", HERE + "/away")
    lrnn("generate", one, "--tokens", "5")  # needs no data
    shutil.copytree(HERE + "/tempest", HERE + "/macbeth")
    assert "began with" in train(one, f"task.data={HERE}/macbeth", "train.steps=9", "--resume", code=2)
    shard = HERE + "/macbeth/train-00000.bin"
    with open(shard, "r+b") as f:
        f.seek(5000)
        byte = f.read(1)[0]
        f.seek(5000)
        f.write(bytes([byte ^ 1]))
    assert "train-00000.bin" in train(HERE + "/three", f"task.data={HERE}/macbeth", "train.steps=5", code=2)
    for documents in ("reset", "join"):
        train(f"{HERE}/{documents}", "train.steps=5", f"task.documents={documents}", "task.boundary=mask")


def published(run):
    """Every config of a published row is listed with its numbers and its data; without these nothing starts."""
    out = HERE + "/reproduce"
    folder = f"{out}/lm/python_40M_n1/seed42"
    cells = answer("reproduce", "lm", "--list", "--out", out)["suites"][0]["cells"]
    names = {os.path.basename(cell["config"]) for cell in cells}
    assert names == {f[:-5] for f in os.listdir("configs/lm")} - {"plays"}, names
    for cell in cells:
        first = open(f"configs/{cell['config']}.yaml").readline()
        numbers = cell["published"]
        if numbers:
            assert f"Wiki {numbers['wikitext']:.2f}, LMB {numbers['lambada_ppl']:.2f} / {numbers['lambada']:g}"[:-2] in first
        assert bool(numbers) == ("not published" not in first) and cell["data"] and cell["ours"] is None, cell
    here = os.getcwd()
    os.chdir(HERE)
    try:
        said = lrnn("reproduce", "lm", "--out", out, code=2)
    finally:
        os.chdir(here)
    assert "data/fineweb is not there (21 rows)" in said and "data/python" in said, said
    assert not os.path.exists(out)
    # A run that is there, with its scores, stands below what is published.
    keys = [f"task.data={HERE}/tempest", "task.vocabulary=0", "train.steps=2", "train.warmup=1", *SMALL[1:]]
    keys += ["train.precision=float32", "model.mixer.heads=1", "--seeds", "1", "--only", "python_40M_n1", "--out", out]
    lrnn("reproduce", "lm", *keys, "--quiet")
    shutil.copytree(run + "/eval", folder + "/eval", dirs_exist_ok=True)
    cell = answer("reproduce", "lm", "--list", *keys)["suites"][0]["cells"][0]
    assert cell["done"] == 1 and cell["ours"]["wikitext"] > 1 and cell["ours"]["loss"] < 10, cell


try:
    whole, killed = HERE + "/whole", HERE + "/killed"
    same_after_kill(killed, whole)
    metrics_and_curves(whole)
    positions(whole)
    rank(whole)
    parity()
    generation(whole)
    questions(whole)
    data(whole)
    published(whole)
    assert "no language model" in lrnn("generate", "configs", code=2)
finally:
    shutil.rmtree(HERE)
print("ok")
