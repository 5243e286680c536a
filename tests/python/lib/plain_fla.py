"""Small random models of fla and transformers, and what they compute on plain torch: fla's kernels have no
CPU, so its own references stand in for them. Nothing of lrnn is involved.
"""

import contextlib
import os
import warnings
from unittest import mock

import torch
import torch.nn.functional as F

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")

import fla  # noqa: E402
import fla.layers.attn  # noqa: E402
import fla.models  # noqa: E402
import transformers  # noqa: E402
from fla.modules.norm import layernorm  # noqa: E402
from fla.ops.delta_rule.naive import delta_rule_recurrence  # noqa: E402
from fla.ops.gated_delta_product.naive import naive_recurrent_gated_delta_product  # noqa: E402
from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule  # noqa: E402
from fla.ops.generalized_delta_rule.dplr.naive import dplr_recurrence  # noqa: E402
from fla.ops.gla.naive import naive_recurrent_gla  # noqa: E402
from fla.ops.kda.gate import naive_kda_gate  # noqa: E402
from fla.ops.kda.naive import naive_recurrent_kda  # noqa: E402

transformers.logging.set_verbosity_error()
from fla.modules.rotary.ops import rotary_embedding_ref  # noqa: E402
from fla.ops.rwkv7.fused_addcmul import torch_addcmul_rwkv7  # noqa: E402
from fla.ops.rwkv7.fused_k_update import k_update_ref  # noqa: E402
from fla.ops.rwkv7.gate_output_correction import gate_output_correction_ref  # noqa: E402


# --------------------------------------------------------------------------- in plain torch, all on [B,T,H,D]
def heads(*tensors):
    return [x.transpose(1, 2) for x in tensors]


def unit(x):
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def plain_delta_rule(q, k, v, beta, use_qk_l2norm_in_kernel, **rest):
    q, k = (unit(x) if use_qk_l2norm_in_kernel else x for x in (q, k))
    return delta_rule_recurrence(*heads(q, k, v, beta))[0].transpose(1, 2), None


def plain_gated_delta_rule(q, k, v, g, beta, A_log, dt_bias, allow_neg_eigval, **rest):
    q, k = (unit(x).repeat_interleave(v.shape[2] // q.shape[2], 2) for x in (q, k))
    beta = beta.sigmoid() * (2 if allow_neg_eigval else 1)
    return naive_recurrent_gated_delta_rule(q, k, v, beta, -A_log.exp() * F.softplus(g + dt_bias))


def plain_kda(q, k, v, g, beta, A_log, dt_bias, allow_neg_eigval, **rest):
    beta = beta.sigmoid() * (2 if allow_neg_eigval else 1)
    return naive_recurrent_kda(unit(q), unit(k), v, naive_kda_gate(g, A_log, dt_bias), beta)


def plain_delta_product(q, k, v, g, beta, num_householder, **rest):
    return naive_recurrent_gated_delta_product(unit(q), unit(k), v, g, beta, q.shape[-1] ** -0.5, num_householder=num_householder)


def plain_rwkv7(r, w, k, v, a, b, **rest):
    o, _ = dplr_recurrence(*heads(r * r.shape[-1] ** 0.5, k, v, a, b, w))
    return o.transpose(1, 2), None


def plain_conv(x, weight, bias=None, activation=None, **rest):
    y = F.conv1d(F.pad(x.transpose(1, 2), (weight.shape[1] - 1, 0)), weight.unsqueeze(1), bias, groups=x.shape[-1])
    return (F.silu(y) if activation else y).transpose(1, 2), None


def plain_norm(x, weight, bias=None, residual=None, eps=1e-5, prenorm=False, residual_in_fp32=False):
    return layernorm.rms_norm_ref(x, weight, bias, residual, eps, prenorm)


def plain_layer_norm(x, weight, bias=None, residual=None, eps=1e-5, prenorm=False, residual_in_fp32=False, is_rms_norm=False):
    return layernorm.layer_norm_ref(x, weight, bias, residual, eps, prenorm)


def plain_group_norm(x, weight, bias, residual=None, eps=1e-5, prenorm=False, residual_in_fp32=False, is_rms_norm=False, num_groups=1):
    return layernorm.group_norm_ref(x, weight, bias, num_groups, residual, eps, is_rms_norm, prenorm)


def plain_gated_norm(x, g, weight, bias=None, activation="swish", residual=None, prenorm=False, residual_in_fp32=False, eps=1e-6):
    return layernorm.rms_norm_ref(x, weight, bias, eps=eps) * (g.sigmoid() if activation == "sigmoid" else F.silu(g))


def plain_shift(x, cu_seqlens=None, cache=None, output_cache=False):
    return F.pad(x, (0, 0, 1, -1)) - x, x[:, -1]


def plain_rotary(x, cos, sin, interleaved=False, **rest):
    return rotary_embedding_ref(x, cos[:x.shape[1]], sin[:x.shape[1]], interleaved)


def plain_attention(q, k, v, causal=True, window_size=(-1, -1)):
    k, v = (x.repeat_interleave(q.shape[2] // x.shape[2], 2) for x in (k, v))
    return F.scaled_dot_product_attention(*heads(q, k, v), is_causal=True).transpose(1, 2)


@contextlib.contextmanager
def plain_torch():
    layers, modules = "fla.layers.", "fla.modules."
    places = {
        layers + "delta_net.chunk_delta_rule": plain_delta_rule,
        layers + "gated_deltanet.chunk_gated_delta_rule": plain_gated_delta_rule,
        layers + "gated_deltanet.causal_conv1d": plain_conv,
        layers + "gated_deltaproduct.chunk_gated_delta_product": plain_delta_product,
        layers + "kda.chunk_kda": plain_kda,
        layers + "gla.chunk_gla": lambda q, k, v, g, **rest: naive_recurrent_gla(q, k, v, g),
        layers + "rwkv7.chunk_rwkv7": plain_rwkv7,
        layers + "rwkv7.l2_norm": unit,
        layers + "rwkv7.fused_addcmul_rwkv7": torch_addcmul_rwkv7,
        layers + "rwkv7.fused_k_rwkv7": k_update_ref,
        layers + "rwkv7.gate_output_correction": gate_output_correction_ref,
        modules + "activations.ops.sqrelu_fwd": lambda x: F.relu(x).square(),
        layers + "rwkv7.token_shift": plain_shift,
        "fla.models.rwkv7.modeling_rwkv7.token_shift": plain_shift,
        modules + "causal_conv1d.ops.causal_conv1d": plain_conv,
        modules + "norm.layernorm.rms_norm": plain_norm,
        modules + "norm.layernorm.layer_norm": plain_layer_norm,
        modules + "norm.layernorm.group_norm": plain_group_norm,
        modules + "norm.fused_norm_gate.rms_norm_gated": plain_gated_norm,
        modules + "rotary.ops.rotary_embedding": plain_rotary,
        layers + "attn.flash_attn_func": plain_attention,
        modules + "activations.ops.swish_fwd": lambda x: F.silu(x),
        modules + "mlp.swiglu_linear": lambda x, y, weight, bias: F.linear(F.silu(x) * y, weight, bias),
    }
    with contextlib.ExitStack() as stack:
        for place, function in places.items():
            stack.enter_context(mock.patch(place, function))
        yield


# ------------------------------------------------------------------------------------------------- models
SMALL = dict(hidden_size=32, num_hidden_layers=2, vocab_size=20)
# name: (class, settings); a name is what the tests call it.
MODELS = {
    "DeltaNet": ("DeltaNet", dict(num_heads=2)),
    "DeltaNet-negative-gate": ("DeltaNet", dict(num_heads=2, allow_neg_eigval=True, use_gate=True, expand_k=0.5)),
    "DeltaNet-tied": ("DeltaNet", dict(num_heads=4, tie_word_embeddings=True, use_short_conv=False, use_beta=False)),
    "DeltaNet-elu-sum": ("DeltaNet", dict(num_heads=2, qk_activation="elu", qk_norm="sum", intermediate_size=48)),
    "GatedDeltaNet": ("GatedDeltaNet", dict(num_heads=2, head_dim=8, allow_neg_eigval=True)),
    "GatedDeltaNet-no-gate": ("GatedDeltaNet", dict(num_heads=2, head_dim=8, use_gate=False, conv_size=3)),
    "GatedDeltaProduct": ("GatedDeltaProduct", dict(num_heads=2, head_dim=8, num_householder=2, allow_neg_eigval=True)),
    "GatedDeltaProduct-forget": ("GatedDeltaProduct", dict(num_heads=2, head_dim=8, num_householder=3, use_forget_gate=True)),
    "GatedDeltaNet-values": ("GatedDeltaNet", dict(num_heads=2, num_v_heads=6, head_dim=8, expand_v=1.5)),
    "GLA": ("GLA", dict(num_heads=2)),
    "GLA-conv": ("GLA", dict(num_heads=2, use_short_conv=True, clamp_min=-0.04, tie_word_embeddings=True, fuse_norm=False)),
    "GLA-no-gate": ("GLA", dict(num_heads=4, use_output_gate=False, expand_k=1.0)),
    "Transformer": ("Transformer", dict(num_heads=4, num_kv_heads=2, rope_theta=500.0)),
    "Transformer-tied": ("Transformer", dict(num_heads=2, tie_word_embeddings=True)),
    "Llama": ("Llama", dict(num_attention_heads=4, num_key_value_heads=2, intermediate_size=48, head_dim=16)),
    "Llama-tied": ("Llama", dict(num_attention_heads=2, intermediate_size=64, tie_word_embeddings=True, rms_norm_eps=1e-5,
                                 rope_parameters={"rope_type": "default", "rope_theta": 5000.0})),
    "Mamba": ("Mamba", dict(state_size=8, conv_kernel=3)),
    "Mamba-tied": ("Mamba", dict(tie_word_embeddings=True, dt_rank=3)),
    "MambaHF": ("MambaHF", dict(state_size=4, time_step_rank=5)),
    "MambaHF-untied": ("MambaHF", dict(tie_word_embeddings=False, residual_in_fp32=False)),
    "MambaHF-first": ("MambaHF", {}),
    "RWKV7": ("RWKV7", dict(head_dim=16, num_hidden_layers=3)),
    "RWKV7-tied": ("RWKV7", dict(head_dim=8, norm_first=False, tie_word_embeddings=True, fuse_norm=False, v_low_rank_dim=5)),
    "DeltaNet-hybrid": ("DeltaNet", dict(num_heads=2, attn={"layers": [1], "num_heads": 4, "num_kv_heads": 2})),
    "GatedDeltaNet-hybrid": ("GatedDeltaNet", dict(num_heads=2, head_dim=8, num_hidden_layers=3, tie_word_embeddings=True, attn=[
        {"layers": [0], "num_heads": 2}, {"layers": [2], "num_heads": 2}])),
    "GatedDeltaProduct-hybrid": ("GatedDeltaProduct", dict(num_heads=2, head_dim=8, attn={"layers": [0], "num_heads": 2, "rope_theta": 99.0})),
    "GLA-hybrid": ("GLA", dict(num_heads=2, attn={"layers": [1], "num_heads": 2})),
}


def classes(name):
    kind = MODELS[name][0]
    module = transformers if kind in ("Llama", "MambaHF") else fla.models
    kind = kind.removesuffix("HF")
    return getattr(module, kind + "Config"), getattr(module, kind + "ForCausalLM")


def build(name):
    torch.manual_seed(0)
    config, model = classes(name)
    with mock.patch("fla.layers.attn.flash_attn_func", plain_attention):
        out = model(config(**{**SMALL, **MODELS[name][1]}))
    for parameter in out.parameters():  # gates and decays away from what they start with
        parameter.data += 0.1 * torch.randn_like(parameter)
    return out


def opened(name, folder):
    """What transformers makes of a folder: every tensor is there, and none is left over."""
    with mock.patch("fla.layers.attn.flash_attn_func", plain_attention):
        model, report = classes(name)[1].from_pretrained(folder, output_loading_info=True)
    for trouble in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not report[trouble], (name, trouble, report[trouble])
    return model


def logits(model, ids):
    # With gradients switched on fla takes the functions that plain_torch replaces.
    with plain_torch():
        return model(ids, use_cache=False).logits.detach()
