#!/usr/bin/env python3
"""Models of fla and transformers come in and go out: `lrnn import` reads what they saved, the logits are
theirs (on plain torch, not on our kernels), `lrnn export` writes the same tensors bit for bit, and what
we trained ourselves they load with our logits. Skipped (exit 77) where fla cannot be imported.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

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
