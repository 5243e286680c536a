#!/usr/bin/env python3
"""Models of fla and transformers come in and go out: `lrnn import` reads what they saved, the logits are
theirs (on plain torch, not on our kernels), `lrnn export` writes the same tensors bit for bit, and what
we trained ourselves they load with our logits. Skipped (exit 77) where fla cannot be imported.
"""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile
import time

from lib.harness import run, skip  # first: it skips where there is no torch
import torch

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    from lib import plain_fla
except ImportError as error:
    skip(f"fla or transformers cannot be imported here ({error})")
from safetensors.torch import load_file, save_file

import lrnn

program = os.environ["LRNN"]
work = pathlib.Path(tempfile.mkdtemp())
IDS = torch.randint(0, 20, (2, 70), generator=torch.Generator().manual_seed(0))


def command(*words, code=0):
    out = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=600)
    assert out.returncode == code, f"{words}: {out.returncode}\n{out.stdout}\n{out.stderr}"
    return out.stdout if code == 0 else out.stderr


def saved(name, dtype=torch.float32, **options):
    """A random model of theirs in a folder, and its logits on plain torch."""
    model = plain_fla.build(name).to(dtype)
    folder = work / name
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder, **options)
    return folder, plain_fla.logits(model.float(), IDS)


def same_logits(got, want, what):
    off = (got - want).abs().max() / want.abs().max()
    assert off <= 2e-4, f"{what}: off by {off:.2g}"
    return off.item()


def tensors(folder):
    return {k: v for file in pathlib.Path(folder).glob("*.safetensors") for k, v in load_file(file).items()}


def same_tensors(got, want, what):
    assert set(got) == set(want), (what, set(got) ^ set(want))
    for key, tensor in want.items():
        assert got[key].dtype == tensor.dtype and torch.equal(got[key], tensor), (what, key)


def check_in_and_out():
    for name in plain_fla.MODELS:
        folder, want = saved(name)
        (folder / "tokenizer.json").write_text('{"version": "1.0"}')
        imported, exported = work / f"{name}-run", work / f"{name}-out"
        command("import", folder, "-o", imported)
        off = same_logits(lrnn.load(imported)(IDS)[0], want, name)
        same_logits(lrnn.load(folder)(IDS)[0], want, f"{name} as it is")
        command("export", imported, "-o", exported)
        same_tensors(tensors(exported), tensors(folder), name)
        if name == "GLA-conv":  # a checkpoint of the run, and the folder itself
            for source in (imported / "checkpoints/step-00000000", folder):
                command("export", source, "-o", work / "same")
                same_tensors(tensors(work / "same"), tensors(folder), source)
                assert (work / "same/tokenizer.json").exists()
                shutil.rmtree(work / "same")
        before, after = (json.loads((at / "config.json").read_text()) for at in (folder, exported))
        for key in ("model_type", "architectures", "hidden_size", "tie_word_embeddings", "dtype", "bos_token_id"):
            assert before.get(key) == after.get(key), (name, key, after.get(key))
        assert (exported / "tokenizer.json").exists() and (exported / "generation_config.json").exists()
        same_logits(plain_fla.logits(plain_fla.opened(name, exported), IDS), want, f"{name} out again")
        print(f"  {name}: logits off by {off:.1e} of the largest")


def check_other_dtypes():
    """Of bfloat16 and float16 files every bit comes back, also where some tensors are float32."""
    for name, dtype in (("DeltaNet", torch.bfloat16), ("GatedDeltaProduct", torch.float16)):
        folder, want = saved(name, dtype)
        file = folder / "model.safetensors"
        mixed = {k: v.float() if "norm" in k else v for k, v in load_file(file).items()}
        save_file(mixed, file, {"format": "pt"})
        command("import", folder, "-o", work / f"{name}-{dtype}")
        same_logits(lrnn.load(work / f"{name}-{dtype}")(IDS)[0], want, f"{name} {dtype}")
        command("export", work / f"{name}-{dtype}", "-o", work / "narrow")
        same_tensors(tensors(work / "narrow"), mixed, f"{name} {dtype}")
        command("export", work / f"{name}-{dtype}", "-o", work / "float32", "--dtype", "float32")
        same_tensors(tensors(work / "float32"), {k: v.float() for k, v in mixed.items()}, "float32")
        command("export", work / f"{name}-{dtype}", "-o", work / "bfloat16", "--dtype", "bfloat16")
        assert all(v.dtype == torch.bfloat16 for v in tensors(work / "bfloat16").values())


def check_several_files():
    folder, want = saved("DeltaNet", max_shard_size="40KB")
    assert len(list(folder.glob("*.safetensors"))) > 2 and (folder / "model.safetensors.index.json").exists()
    command("import", folder, "-o", work / "sharded")
    same_logits(lrnn.load(work / "sharded")(IDS)[0], want, "several files")
    command("export", work / "sharded", "-o", work / "joined")
    same_tensors(tensors(work / "joined"), tensors(folder), "several files")


def check_old_layouts():
    """Files of 2024 and 2025: gate and up in one, a tensor per householder, use_gate."""
    folder, want = saved("GatedDeltaProduct")
    file = folder / "model.safetensors"
    old = {}
    for key, tensor in load_file(file).items():
        for part in ("k_proj", "v_proj", "b_proj", "k_conv1d", "v_conv1d", "q_conv1d"):
            if f".{part}." in key:
                pieces = tensor.chunk(1 if part == "q_conv1d" else 2)
                old.update({key.replace(f".{part}.", f".{part}s.{j}."): x.clone() for j, x in enumerate(pieces)})
                if part == "q_conv1d":  # a second one, which nobody reads
                    old[key.replace(".q_conv1d.", ".q_conv1ds.1.")] = torch.zeros_like(tensor)
                break
        else:
            if key.endswith("mlp.gate_proj.weight"):
                tensor = torch.cat([tensor, load_file(file)[key.replace("gate_proj", "up_proj")]])
            if not key.endswith("mlp.up_proj.weight"):
                old[key] = tensor
    save_file(old, file, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["use_gate"] = config.pop("use_output_gate")
    (folder / "config.json").write_text(json.dumps(config))
    same_logits(lrnn.load(folder)(IDS)[0], want, "the layout of 2025")


def check_older_layouts():
    """The six mixtures of RWKV-7 in one tensor, and the config and embedding of the first Mamba."""
    folder, want = saved("RWKV7")
    file = folder / "model.safetensors"
    old = load_file(file)
    for layer in range(3):
        at = f"model.layers.{layer}.attn.x_"
        old[at + "x"] = torch.cat([old.pop(at + letter).flatten(0, 1) for letter in "rwkvag"])
    save_file(old, file, {"format": "pt"})
    same_logits(lrnn.load(folder)(IDS)[0], want, "x_x")
    folder, want = saved("MambaHF-first")
    file = folder / "model.safetensors"
    old = {k.replace("embeddings", "embedding"): v for k, v in load_file(file).items()}
    old["lm_head.weight"] = old["backbone.embedding.weight"].clone()
    save_file(old, file, {"format": "pt"})
    (folder / "config.json").write_text(json.dumps({
        "d_model": 32, "n_layer": 2, "vocab_size": 19, "ssm_cfg": {}, "rms_norm": True, "residual_in_fp32": True,
        "fused_add_norm": True, "pad_vocab_size_multiple": 4, "tie_embeddings": True}))
    same_logits(lrnn.load(folder)(IDS)[0], want, "the first Mamba")
    command("import", folder, "-o", work / "first")
    command("export", work / "first", "-o", work / "first-out")
    same_logits(plain_fla.logits(plain_fla.opened("MambaHF-first", work / "first-out"), IDS), want, "the first Mamba out again")


def check_hostile_folders():
    """Refused with a sentence and exit code 2, in little time and memory."""
    def spoil(name, change):
        folder = work / f"hostile-{name}"
        shutil.copytree(saved("DeltaNet")[0], folder)
        change(folder)
        begin = time.time()
        said = command("import", folder, "-o", work / f"hostile-{name}-run", code=2)
        assert said.startswith("lrnn: ") and time.time() - begin < 60, said
        assert not (work / f"hostile-{name}-run").exists(), name
        return said

    def header(folder, size, length):
        with open(folder / "model.safetensors", "wb") as file:
            file.write(size.to_bytes(8, "little"))
            file.truncate(length)

    def index(folder, name):
        (folder / "model.safetensors").rename(folder / "a.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"model.norm.weight": name}}))

    def config(folder, **changes):
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))

    def pickle(folder):
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")

    assert "but only" in spoil("long", lambda f: header(f, 2**63, 100))
    assert "no model needs more" in spoil("sparse", lambda f: header(f, 2**34, 2**34 + 8))
    for i, name in enumerate(("../a.safetensors", "/tmp/a.safetensors", "..")):
        assert "is not the name of" in spoil(f"index{i}", lambda f: index(f, name))
    assert "is not there" in spoil("missing", lambda f: index(f, "b.safetensors"))
    assert "weights_only=True" in spoil("pickle", pickle)
    assert "num_heads must be" in spoil("type", lambda f: config(f, num_heads="two"))
    assert "num_hidden_layers must be" in spoil("layers", lambda f: config(f, num_hidden_layers=10**9))
    assert "more" in spoil("many", lambda f: config(f, num_hidden_layers=5000))
    assert "do not fit" in spoil("wide", lambda f: config(f, hidden_size=9_000_000, num_heads=1))
    assert "cannot be read" in spoil("json", lambda f: (f / "config.json").write_text("[" * 10**6))
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert most < 2 * 2**20, f"{most} kB"


def check_ids():
    folder, want = saved("DeltaNet")
    (work / "ids.json").write_text(json.dumps(IDS[0].tolist()))
    said = json.loads(command("import", folder, "--check", work / "ids.json", "--json"))["check"]
    same_logits(torch.tensor(said["logits"]), want[0, :8], "--check")
    loss = torch.nn.functional.cross_entropy(want[0, :-1], IDS[0, 1:]).item()
    assert abs(said["loss"] - loss) < 1e-4, (said["loss"], loss)
    assert "loss of 69 ids" in command("import", folder, "--check", work / "ids.json")
    (work / "ids.json").write_text("[1, 20]")
    assert "20 is not an id below 20" in command("import", folder, "--check", work / "ids.json", code=2)


OURS = {  # their class: our model
    "DeltaNet": "{mixer: {name: delta_net, heads: 2, key_dim: 8, range: [-1, 1]}}",
    "GatedDeltaNet": "{mixer: {name: delta_product, heads: 2, key_dim: 8, value_heads: 4, forget_gate: true}}",
    "GatedDeltaProduct": "{mixer: {name: delta_product, heads: 2, key_dim: 8, householders: 2, output_gate: true}, tied: true}",
    "GLA": "{mixer: {name: gla, heads: 2}, hybrid: {every: 2, mixer: {name: attention, heads: 2}}}",
    "DeltaNet-hybrid": "{mixer: {name: attention, heads: 2}, hybrid: {layers: [0], mixer: {name: delta_net, heads: 2, key_dim: 4}}}",
    "Llama": "{mixer: {name: attention, heads: 2, kv_heads: 1, head_dim: 6, rotary_base: 77}}",
    "Mamba": "{mixer: {name: mamba, range: [0, 1]}, mlp: {name: none}}",
    "MambaHF": "{mixer: {name: mamba, range: [0, 1], dt_rank: 3}, mlp: {name: none}, tied: true, norm_eps: 1e-5}",
    "RWKV7": "{mixer: {name: rwkv7, heads: 2, head_dim: 8, value_rank: 3}, norm: affine, norm_eps: 1e-5, mlp: {name: channel_mix}, "
             "input_norm: true}",
}


def check_ours():
    """What we trained they load, every tensor of it, and it says what our program says."""
    task = "{name: tokens, vocabulary: 20, train: {length: 8}, eval: {length: 8, samples: 2}}"
    for name, model in OURS.items():
        ours, theirs = work / f"ours-{name}", work / f"theirs-{name}"
        model = model[:-1] + ", width: 16, layers: 2, init: {std: 0.3}}"
        lrnn.train(f"task: {task}\nmodel: {model}\ntrain: {{steps: 2, batch: 2}}", out=ours, progress=False)
        command("export", ours, "-o", theirs)
        got = plain_fla.logits(plain_fla.opened(name, theirs), IDS)
        same_logits(got, lrnn.load(ours)(IDS)[0].detach(), f"our {name}")
        same_logits(lrnn.load(theirs)(IDS)[0], got, f"our {name} in again")


def check_generate():
    """Greedy continuation of an imported model, by the tokenizer that came with it."""
    folder, _ = saved("DeltaNet-negative-gate")
    letters = {chr(97 + i): i for i in range(20)}
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    imported = work / "generating"
    command("import", folder, "-o", imported)
    words = ("--prompt", "cab", "--temperature", 0, "--tokens", 5, "--json")
    said = json.loads(command("generate", imported, *words))
    assert said["prompt"] == [1, 2, 0, 1], said  # behind bos_token_id
    ids = lrnn.load(imported).generate(torch.tensor([said["prompt"]]), 5)[0, 4:].tolist()
    cut = next((i for i, token in enumerate(ids) if token in (1, 2)), 5)  # where it would begin or end a document
    assert said["sequences"][0]["ids"] == ids[:cut], (said, ids)
    assert json.loads(command("generate", folder, *words))["sequences"] == said["sequences"]


def check_it_is_a_run():
    """Eval, spectrum and train --from open it."""
    run_folder = work / "DeltaNet-run"
    assert json.loads(command("eval", run_folder, "--samples", 4, "--json"))
    assert json.loads(command("spectrum", run_folder, "--samples", 2, "--json"))["heads"]
    command("train", "--from", run_folder, "train.steps=2", "train.batch=2", "--out", work / "on", "--quiet")
    assert lrnn.load(work / "on").step == 2
    assert "--from" in command("train", run_folder, "--resume", code=2)
    assert "already holds a run" in command("import", work / "DeltaNet", "-o", run_folder, code=2)


run(globals())
