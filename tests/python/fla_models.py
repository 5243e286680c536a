#!/usr/bin/env python3
"""After lrnn.fla.enable() fla's own models run on a CPU, on lrnn's kernels: logits, loss and gradients
are those of the same models on plain torch; a token at a time and with padding they are the same; and
disable() leaves nothing behind. Skipped (exit 77) where fla and transformers cannot be imported.
"""

import copy
import os
import warnings
from unittest import mock

from lib.harness import close, refused, run, skip  # first: it skips where there is no torch
import torch
import torch.nn.functional as F

import lrnn

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")
try:
    import fla
    import fla.models
    import transformers
    from fla.modules.norm import layernorm
    from lib.plain_fla import plain_torch
except ImportError as error:
    skip(f"fla or transformers cannot be imported here ({error})")

THEIRS = {"delta_net": fla.layers.delta_net.chunk_delta_rule, "conv": fla.modules.causal_conv1d.ops.causal_conv1d,
          "norm": layernorm.rms_norm, "swish": fla.modules.activations.ACT2FN["swish"]}
SMALL = dict(hidden_size=32, num_hidden_layers=2, num_heads=2, vocab_size=20, pad_token_id=0)
MODELS = {
    "DeltaNet": dict(allow_neg_eigval=True),
    "GatedDeltaNet": dict(head_dim=8, allow_neg_eigval=True, num_v_heads=4),
    "GatedDeltaProduct": dict(head_dim=8, num_householder=2, allow_neg_eigval=True),
    "GLA": {},
    "KDA": dict(head_dim=8, allow_neg_eigval=True, num_v_heads=4),
    "RWKV7": dict(head_dim=16, num_heads=None),
}


def build(name):
    torch.manual_seed(0)
    config = getattr(fla.models, f"{name}Config")(**{**SMALL, **MODELS[name]})
    model = transformers.AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():  # gates and decays away from what they start with
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


# ------------------------------------------------------------------------------------------------- checks
def check_enable():
    refused(Exception, "", build("DeltaNet"), torch.zeros(1, 70, dtype=torch.long))  # Triton has no CPU
    lrnn.fla.enable()
    lrnn.fla.enable()  # once is enough
    from fla.backends import _get_operation_registry

    registry = _get_operation_registry("gated_delta_rule")
    assert registry.get_active().backend_type == "lrnn"
    with mock.patch.dict(os.environ, FLA_LRNN="0"):
        active = registry.get_active()
        assert active is None or active.backend_type != "lrnn"
        refused(Exception, "", build("DeltaNet"), torch.zeros(1, 70, dtype=torch.long))


def check_models():
    ids = torch.randint(1, 20, (2, 70), generator=torch.Generator().manual_seed(0))
    for name in MODELS:
        model = build(name)
        got = model(ids, labels=ids)
        got.loss.backward()
        twin = copy.deepcopy(model)
        twin.zero_grad()
        with plain_torch():
            want = twin(ids)
        loss = F.cross_entropy(want.logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        logits = model(ids).logits
        close(logits, want.logits, 1e-4, f"{name}: logits")
        close(got.loss, loss, 1e-5, f"{name}: loss")
        for (key, p), q in zip(model.named_parameters(), twin.parameters()):
            close(p.grad, q.grad, 1e-3, f"{name}: gradient of {key}")


def check_steps_and_padding():
    ids = torch.randint(1, 20, (2, 9), generator=torch.Generator().manual_seed(1))
    for name in MODELS:
        model = build(name).eval()
        with torch.no_grad():
            whole, cache, steps = model(ids).logits, None, []
            for t in range(ids.shape[1]):
                out = model(ids[:, t:t + 1], past_key_values=cache, use_cache=True)
                cache = out.past_key_values
                steps.append(out.logits)
            close(torch.cat(steps, 1), whole, 1e-4, f"{name}: a token at a time")
            padded = F.pad(ids[:1], (3, 0))
            mask = (torch.arange(padded.shape[1]) >= 3).long().unsqueeze(0)
            close(model(padded, attention_mask=mask).logits[:, 3:], whole[:1], 1e-4, f"{name}: padded")
            words = model.generate(ids[:1], attention_mask=torch.ones_like(ids[:1]), min_new_tokens=4, max_new_tokens=4, do_sample=False)
            assert words.shape == (1, 13), name


def check_packed():
    ids, bounds = torch.randint(1, 20, (1, 12), generator=torch.Generator().manual_seed(2)), torch.tensor([0, 5, 12], dtype=torch.int32)
    for name in MODELS:
        model = build(name)
        alone = torch.cat([model(ids[:, :5]).logits, model(ids[:, 5:]).logits], 1)
        close(model(ids, cu_seqlens=bounds).logits, alone, 1e-4, f"{name}: packed")


def check_losses():
    from fla.modules import FusedCrossEntropyLoss, FusedLinearCrossEntropyLoss

    torch.manual_seed(0)
    x, weight, target = torch.randn(6, 4), torch.randn(5, 4), torch.tensor([0, 1, -100, 3, 4, 2])
    logits = x @ weight.T
    close(FusedCrossEntropyLoss()(logits, target), F.cross_entropy(logits, target), 1e-6, "cross entropy")
    close(FusedCrossEntropyLoss(label_smoothing=0.1, reduction="sum")(logits, target),
          F.cross_entropy(logits, target, label_smoothing=0.1, reduction="sum"), 1e-6, "smoothed")
    close(FusedLinearCrossEntropyLoss()(x, target, weight), F.cross_entropy(logits, target), 1e-6, "of a product")
    refused(lrnn.fla.Unsupported, "no use_l2warp", FusedLinearCrossEntropyLoss(use_l2warp=True), x, target, weight)


def check_attention_residuals():
    from fla.ops.attnres import fused_attnres, naive_attnres

    torch.manual_seed(0)
    for kind, bound in ((torch.float32, 1e-5), (torch.bfloat16, 1e-2)):
        query, weight, after = (torch.randn(8, requires_grad=True) for _ in range(3))
        sources = [torch.randn(2, 5, 8, dtype=kind, requires_grad=True) for _ in range(3)]
        direction = torch.randn(2, 5, 8)
        seen = []
        for function in (fused_attnres, naive_attnres):
            o, p = function(query, sources, weight, after, scale=0.7, return_weights=True)
            assert o.dtype == kind
            seen.append([o, p, *torch.autograd.grad((o * direction).sum() + p.square().sum(), [query, weight, after, *sources])])
        for got, want in zip(*seen):
            close(got.float(), want.float(), bound, f"attention residuals, {kind}")
    model = transformers.AutoModelForCausalLM.from_config(fla.models.DeltaNetConfig(**SMALL, attnres_block_size=1))
    ids = torch.zeros(1, 70, dtype=torch.long)
    model(ids, labels=ids).loss.backward()


def check_disable():
    lrnn.fla.disable()
    assert fla.layers.delta_net.chunk_delta_rule is THEIRS["delta_net"]
    assert fla.modules.causal_conv1d.ops.causal_conv1d is THEIRS["conv"] and layernorm.rms_norm is THEIRS["norm"]
    assert fla.modules.activations.ACT2FN["swish"] is THEIRS["swish"]
    from fla.backends import _get_operation_registry

    assert "lrnn" not in _get_operation_registry("gated_delta_rule")._backends
    refused(Exception, "", build("DeltaNet"), torch.zeros(1, 70, dtype=torch.long))
    lrnn.fla.enable()  # and back again
    assert build("DeltaNet")(torch.zeros(1, 70, dtype=torch.long)).logits.isfinite().all()
    lrnn.fla.disable()


run(globals())
