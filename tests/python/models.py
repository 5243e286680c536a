"""Runs from Python: trained, compiled, evaluated, loaded, and trained on by torch's own optimiser."""

import copy
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib"))
from harness import refused, run  # noqa: E402

import torch  # noqa: E402

import lrnn  # noqa: E402

folder = pathlib.Path(tempfile.mkdtemp())
TINY = {
    "seed": 1,
    "task": {"name": "parity", "train": {"length": [3, 12]}, "eval": {"length": [12, 24], "samples": 64}},
    "model": {"width": 16, "layers": 1, "mixer": {"name": "delta_product", "heads": 2, "key_dim": 8, "range": [-1, 1]}},
    "train": {"steps": 5, "batch": 8},
}


def check_training_is_the_programs():
    """A dict, a file and YAML text give the same weights as the command line does."""
    result = lrnn.train(TINY, out=folder / "dict", progress=False)
    assert result["step"] == 5 and 0 <= result["evaluation"]["accuracy"] <= 1, result
    model = lrnn.load(folder / "dict")
    assert model.config["train"]["steps"] == 5 and model.step == 5 and model.config["model"]["mixer"]["range"] == [-1, 1]
    text = "seed: 1\ntask: {name: parity, train: {length: [3, 12]}, eval: {length: [12, 24], samples: 64}}\n" \
           "model: {width: 16, layers: 1, mixer: {name: delta_product, heads: 2, key_dim: 8, range: [-1, 1]}}\n" \
           "train: {steps: 3, batch: 8}\n"
    other = lrnn.load(lrnn.train(text, progress=True, **{"train.steps": 5})["run"])
    for (name, a), (same, b) in zip(model.named_parameters(), other.named_parameters()):
        assert name == same and torch.equal(a, b), name
    assert "model.layers.0.attn.q_proj.weight" in model.state_dict()
    again = lrnn.train(folder / "dict", resume=True, progress=False, **{"train.steps": 7})
    assert again["step"] == 7, again


def check_results_are_plain_objects():
    accuracy = lrnn.evaluate(folder / "dict", lengths="5:9", samples=32)
    assert accuracy["evaluation"]["count"] == 32, accuracy
    assert lrnn.spectrum(folder / "dict", samples=4)["heads"]
    made = lrnn.compile(example="parity", out=folder / "parity")
    assert made["run"] == str(folder / "parity") and made["exactness"] == "exact", made
    assert lrnn.verify(made["run"], tokens=2000)["right"] is True
    assert lrnn.verify(folder / "dict", tokens=2000)["right"] is False  # five steps are not enough
    assert lrnn.check(regex="(ab)*", alphabet="ab")["class"]["solvable"] is True


def check_a_compiled_model_counts():
    model = lrnn.load(folder / "parity")
    bits = torch.randint(2, (3, 200))
    logits, _ = model(bits)
    assert logits.shape == (3, 200, model.vocabulary)
    # A piece at a time, and packed, is the same.
    first, state = model(bits[:, :70])
    rest, _ = model(bits[:, 70:], state)
    assert torch.equal(torch.cat([first, rest], 1), logits)
    packed, _ = model(torch.cat([bits[0, :50], bits[1, :150]])[None], cu_seqlens=torch.tensor([0, 50, 200]))
    assert torch.equal(packed[0, :50], logits[0, :50]) and torch.equal(packed[0, 50:], logits[1, :150])
    answer = logits.argmax(-1)
    odd = bits.cumsum(1) % 2
    yes, no = answer[odd == 1].unique(), answer[odd == 0].unique()
    assert len(yes) == len(no) == 1 and yes != no, (yes, no)


def check_it_trains():
    """The parameters are the C++ model's own: an optimiser of torch moves what forward reads."""
    model = lrnn.load(folder / "dict")
    before = copy.deepcopy(model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    ids, target = torch.randint(2, (8, 12)), torch.randint(2, (8, 12))
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        logits, _ = model(ids)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0], losses
    assert all(p.grad is not None for p in model.parameters())
    with torch.no_grad():
        assert not torch.equal(model(ids)[0], before(ids)[0])
        before.load_state_dict(model.state_dict())
        assert torch.equal(model(ids)[0], before(ids)[0])
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in before.parameters())
    wide = copy.deepcopy(model).double()
    assert wide(ids)[0].dtype == torch.float64
    torch.testing.assert_close(wide(ids)[0].float(), model(ids)[0], rtol=1e-4, atol=1e-5)


def check_generation():
    model = lrnn.load(folder / "dict")
    ids = torch.randint(2, (2, 3))
    out = model.generate(ids, 5)
    assert out.shape == (2, 8) and torch.equal(out[:, :3], ids) and torch.equal(out, model.generate(ids, 5))
    whole = model(out)[0].argmax(-1)
    assert torch.equal(whole[:, 2:-1], out[:, 3:])  # what it says after all it has said
    drawn = [model.generate(ids, 20, temperature=1.0, top_k=2, seed=seed) for seed in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    refused(lrnn.Error, "must not be negative", model.generate, ids, -1)


def check_mistakes_are_told():
    refused(lrnn.Error, "is neither a run nor a checkpoint", lrnn.load, folder / "nothing")
    refused(lrnn.Error, "train.steps must be a whole number", lrnn.train, TINY, progress=False, **{"train.steps": "a"})
    refused(lrnn.Error, "int64 [B,T]", lrnn.load(folder / "parity"), torch.zeros(3, dtype=torch.int64))
    try:
        lrnn.compile(regex="(", alphabet="ab")
    except lrnn.Error as error:
        assert error.sentence and "\n" not in error.sentence, error
    else:
        raise AssertionError("an open bracket was taken")


def check_ctrl_c_saves():
    """As in a notebook: KeyboardInterrupt comes to us alone, and the run can go on."""
    out = folder / "long"
    threading.Timer(3.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.time()
    try:
        lrnn.train(TINY, out=out, progress=False, **{"train.steps": 10_000_000})
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("it was not interrupted")
    assert time.time() - begin < 120
    step = lrnn.load(out).step
    assert step > 0
    assert lrnn.train(out, resume=True, progress=False, **{"train.steps": step + 1})["step"] == step + 1


run(globals())
