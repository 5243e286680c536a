from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from ..error import Error
from ..ops import gated_linear_attention, swiglu
from .parts import RMSNorm, ShortConv, State, linear, only, opened, wide


class GatedLinearAttention(nn.Module):
    """fla's GatedLinearAttention, with its arguments; with `allow_neg_eigval` gates reach from -1 to 1 (2 gate - 1).

    Args:
        hidden_size: of x and y.
        expand_k, expand_v: channels of all keys and values, as a share of it.
        num_heads, num_kv_heads: heads; with fewer of keys and values several queries share them.
        gate_logit_normalizer, gate_low_rank_dim, clamp_min: gates are logsigmoid(x A B) / normalizer, at least clamp_min.
        use_output_gate, use_short_conv, conv_size, conv_bias, norm_eps: as in fla.
        fuse_norm: whether the norm has the name that it has in fla with its gate.
        mode, layer_idx: of fla's kernels and caches; nothing to choose here.

    >>> import torch, lrnn
    >>> y, state = lrnn.nn.GatedLinearAttention(hidden_size=64, num_heads=2)(torch.randn(1, 10, 64))
    """

    def __init__(
        self,
        mode: str = "chunk",
        hidden_size: int = 1024,
        expand_k: float = 0.5,
        expand_v: float = 1.0,
        num_heads: int = 4,
        num_kv_heads: int | None = None,
        feature_map: str | None = None,
        use_short_conv: bool = False,
        conv_size: int = 4,
        conv_bias: bool = False,
        use_output_gate: bool = True,
        gate_fn: str = "swish",
        elementwise_affine: bool | None = True,
        norm_eps: float = 1e-5,
        gate_logit_normalizer: int = 16,
        gate_low_rank_dim: int = 16,
        clamp_min: float | None = None,
        fuse_norm: bool = True,
        layer_idx: int | None = None,
        allow_neg_eigval: bool = False,
    ) -> None:
        super().__init__()
        only(
            "GatedLinearAttention",
            {"feature_map": feature_map, "gate_fn": gate_fn, "elementwise_affine": elementwise_affine},
            feature_map=(None,),
            gate_fn=("swish", "silu"),
            elementwise_affine=(True, None),
        )
        keys, values = int(hidden_size * expand_k), int(hidden_size * expand_v)
        if keys % num_heads or values % num_heads:
            raise Error(f"[GatedLinearAttention] {num_heads} heads do not divide {keys} channels of keys and {values} of values")
        self.heads, self.groups = num_heads, num_heads // (num_kv_heads or num_heads)
        self.key_dim, self.value_dim = keys // num_heads, values // num_heads
        self.normalizer, self.clamp_min, self.negative = gate_logit_normalizer, clamp_min, allow_neg_eigval
        kv_keys, kv_values = keys // self.groups, values // self.groups
        self.q_proj, self.k_proj, self.v_proj = linear(hidden_size, keys), linear(hidden_size, kv_keys), linear(hidden_size, kv_values)
        self.q_conv1d = ShortConv(keys, conv_size, conv_bias) if use_short_conv else None
        self.k_conv1d = ShortConv(kv_keys, conv_size, conv_bias) if use_short_conv else None
        self.v_conv1d = ShortConv(kv_values, conv_size, conv_bias) if use_short_conv else None
        self.gk_proj = nn.Sequential(linear(hidden_size, gate_low_rank_dim), linear(gate_low_rank_dim, kv_keys, bias=True))
        self.g_proj = linear(hidden_size, values) if use_output_gate else None
        # fla's names: of the norm with its gate, and without.
        self.norm_name = "g_norm_swish_gate" if use_output_gate and fuse_norm else "g_norm"
        self.add_module(self.norm_name, RMSNorm(self.value_dim, norm_eps))
        self.o_proj = linear(values, hidden_size)

    def forward(
        self, x: Tensor, state: State | None = None, cu_seqlens: Tensor | None = None
    ) -> tuple[Tensor, State]:
        state = opened("GatedLinearAttention", state, 4 if self.q_conv1d else 1)
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.q_conv1d is not None:
            q, state[1] = self.q_conv1d(q, state[1], True, cu_seqlens)
            k, state[2] = self.k_conv1d(k, state[2], True, cu_seqlens)  # type: ignore[misc]
            v, state[3] = self.v_conv1d(v, state[3], True, cu_seqlens)  # type: ignore[misc]
        gate = F.logsigmoid(wide(self.gk_proj(x))) / self.normalizer
        if self.clamp_min is not None:
            gate = gate.clamp_min(self.clamp_min)
        q = q.unflatten(-1, (self.heads, self.key_dim))
        k, gate = (y.unflatten(-1, (-1, self.key_dim)) for y in (k, gate))
        v = v.unflatten(-1, (-1, self.value_dim))
        if self.groups > 1:
            k, gate, v = (y.repeat_interleave(self.groups, -2) for y in (k, gate, v))
        o, state[0] = gated_linear_attention(q, k, v, gate, state[0], negative=self.negative, cu_seqlens=cu_seqlens)
        y = self.get_submodule(self.norm_name)(o).flatten(-2)
        if self.g_proj is not None:
            y = swiglu(self.g_proj(x), y)
        return self.o_proj(y), state
