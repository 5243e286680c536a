#!/usr/bin/env python3
"""A run that `lrnn export` wrote is a folder that fla itself loads: the same type, every parameter,
none left over, and the weights bit for bit. LRNN names the program. Skipped (exit 77) where fla and
transformers cannot be imported (pip install flash-linear-attention transformers).
"""

import json
import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"  # the folder is here; nothing is to be asked elsewhere
try:
    import fla  # noqa: F401  (registers its models)
    import transformers
    from safetensors.torch import load_file
except ImportError as error:
    print(f"skipped: fla or transformers cannot be imported here ({error})")
    sys.exit(77)

program = os.environ["LRNN"]
SMALL = ["train.steps=1", "train.batch=4", "task.eval.samples=4"]
CASES = {
    "delta_net": ("configs/chomsky/parity_delta_net_2.yaml", []),
    "gated_deltanet": ("configs/chomsky/parity_delta_net_2.yaml", ["model.mixer.forget_gate=true"]),
    "gated_deltaproduct": ("configs/deltaproduct/S3_n2.yaml", ["task.train.set=8"]),
}


def lrnn(*words):
    out = subprocess.run([program, *words], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return out.stdout


with tempfile.TemporaryDirectory() as work:
    for kind, (config, overrides) in CASES.items():
        run, folder = f"{work}/{kind}", f"{work}/{kind}_fla"
        lrnn("train", config, *SMALL, *overrides, "--out", run, "--quiet")
        said = json.loads(lrnn("export", run, "-o", folder, "--json"))
        assert said["model_type"] == kind, said
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            folder, output_loading_info=True)
        for trouble in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            assert not report[trouble], (kind, trouble, report[trouble])
        ours, theirs = load_file(f"{folder}/model.safetensors"), model.state_dict()
        assert set(ours) <= set(theirs), set(ours) - set(theirs)
        for name, weight in ours.items():
            assert theirs[name].equal(weight), (kind, name)
        print(f"{kind}: {len(ours)} tensors, {sum(w.numel() for w in ours.values()):,} parameters")
