from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..error import Error
from ..ops import l2_norm, rwkv7
from .parts import State, linear, only, opened, wide

SLOWEST = math.exp(-0.5)  # log w lies between -SLOWEST and 0


class LoRA(nn.Module):
    """fla's module around a pair of matrices."""

    def __init__(self, inputs: int, outputs: int, rank: int, activation: nn.Module, bias: bool = True) -> None:
        super().__init__()
        self.lora = nn.Sequential(linear(inputs, rank), activation, linear(rank, outputs, bias))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.lora(x)
        return y


def _rank(width: int, factor: float, given: int | None) -> int:
    return given or max(32, round(factor * math.sqrt(width) / 32) * 32)


class RWKV7(nn.Module):
    """The time mixing of RWKV-7 by fla's names. With `allow_neg_eigval` the rate a reaches 2, a reflection.

    Layers after the first mix their values with the first layer's: pass those as `v_first`, which
    `values` of the first layer gives for the same x and state.

    Args:
        hidden_size: of x and y.
        head_dim, num_heads: of the state; as many heads as fit without num_heads.
        decay_low_rank_dim, gate_low_rank_dim, a_low_rank_dim, v_low_rank_dim: ranks; as fla chooses them without.
        layer_idx: 0 for the first layer, which has no v_first.
        norm_eps: of the norm of the outputs, times head_dim.
        mode, fuse_norm, num_hidden_layers: of fla's kernels and initialisation; nothing to choose here.

    >>> import torch, lrnn
    >>> layer = lrnn.nn.RWKV7(hidden_size=64, head_dim=32, layer_idx=0)
    >>> y, (state, last) = layer(torch.randn(1, 10, 64))
    >>> state.shape, last.shape
    (torch.Size([1, 2, 32, 32]), torch.Size([1, 64]))
    """

    def __init__(
        self,
        mode: str = "chunk",
        hidden_size: int = 1024,
        head_dim: int = 64,
        num_heads: int | None = None,
        decay_low_rank_dim: int | None = None,
        gate_low_rank_dim: int | None = None,
        a_low_rank_dim: int | None = None,
        v_low_rank_dim: int | None = None,
        elementwise_affine: bool | None = True,
        norm_eps: float = 1e-5,
        layer_idx: int | None = None,
        fuse_norm: bool = False,
        value_dim: int | None = None,
        num_hidden_layers: int | None = None,
        allow_neg_eigval: bool = False,
    ) -> None:
        super().__init__()
        inner = (num_heads or hidden_size // head_dim) * head_dim
        only(
            "RWKV7",
            {"value_dim": value_dim, "elementwise_affine": elementwise_affine},
            value_dim=(None, inner),
            elementwise_affine=(True, None),
        )
        self.head_dim, self.largest = head_dim, 2.0 if allow_neg_eigval else 1.0
        factor = head_dim / 64
        ramp = torch.arange(hidden_size) / hidden_size
        for name, power in (("r", 0.2), ("w", 0.9), ("k", 0.7), ("v", 0.7), ("a", 0.9), ("g", 0.2)):
            self.register_parameter(f"x_{name}", nn.Parameter(1 - ramp.pow(power)[None, None]))
        self.k_k = nn.Parameter(torch.full((inner,), 0.85))
        self.k_a = nn.Parameter(torch.ones(inner))
        self.r_k = nn.Parameter(torch.zeros(inner // head_dim, head_dim))
        self.r_proj, self.k_proj, self.v_proj = (linear(hidden_size, inner) for _ in range(3))
        self.o_proj = linear(inner, hidden_size)
        self.w_lora = LoRA(hidden_size, inner, _rank(hidden_size, 2.5 * factor, decay_low_rank_dim), nn.Tanh())
        self.a_lora = LoRA(hidden_size, inner, _rank(hidden_size, 2.5 * factor, a_low_rank_dim), nn.Identity())
        self.g_lora = LoRA(hidden_size, inner, _rank(hidden_size, 5.0, gate_low_rank_dim), nn.Sigmoid(), bias=False)
        self.v_lora = None
        if layer_idx:
            self.v_lora = LoRA(hidden_size, inner, _rank(hidden_size, 1.7 * factor, v_low_rank_dim), nn.Identity())
        self.g_norm = nn.GroupNorm(inner // head_dim, inner, eps=head_dim * norm_eps)
        with torch.no_grad():
            channel = torch.arange(inner) / inner
            self.w_lora.get_parameter("lora.2.bias").copy_(-6.5 + 5 * channel.pow(0.85))
            self.a_lora.get_parameter("lora.2.bias").zero_()

    def _shifted(self, x: Tensor, last: Tensor | None, cu_seqlens: Tensor | None) -> tuple[Tensor, Tensor]:
        """The token before each, and the last of each sequence [S,D]."""
        before = F.pad(x, (0, 0, 1, -1))
        if cu_seqlens is None:
            if last is not None and x.shape[1]:
                before = torch.cat([last.to(x.dtype)[:, None], before[:, 1:]], 1)
            return before, x[:, -1] if x.shape[1] else (last if last is not None else x.new_zeros(x.shape[0], x.shape[2]))
        begins, ends = cu_seqlens[:-1].long(), cu_seqlens[1:].long()
        filled = (ends > begins)[:, None]
        old = x.new_zeros(len(begins), x.shape[2]) if last is None else last.to(x.dtype)
        # An empty sequence has no first token; its place in the list must not be another's.
        first = torch.where(filled[:, 0], begins, x.shape[1])
        before = torch.cat([before, before.new_zeros(1, 1, x.shape[2])], 1).index_copy(1, first, old[None])[:, :-1]
        return before, torch.where(filled, x[0, (ends - 1).clamp(min=0)], old)

    def _mixed(self, x: Tensor, before: Tensor, name: str) -> Tensor:
        return torch.addcmul(x, before - x, self.get_parameter(f"x_{name}").to(x.dtype))

    def values(self, x: Tensor, state: State | None = None, cu_seqlens: Tensor | None = None) -> Tensor:
        """The first layer's values [B,T,H D], which later layers take as `v_first`."""
        before, _ = self._shifted(x, opened("RWKV7", state, 2)[1], cu_seqlens)
        v: Tensor = self.v_proj(self._mixed(x, before, "v"))
        return v

    def forward(
        self,
        x: Tensor,
        state: State | None = None,
        cu_seqlens: Tensor | None = None,
        v_first: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        state = opened("RWKV7", state, 2)
        before, state[1] = self._shifted(x, state[1], cu_seqlens)

        def heads(y: Tensor) -> Tensor:
            split: Tensor = y.unflatten(-1, (-1, self.head_dim))
            return split

        def mixed(name: str) -> Tensor:
            return self._mixed(x, before, name)

        r, k, v = self.r_proj(mixed("r")), self.k_proj(mixed("k")), self.v_proj(mixed("v"))
        if self.v_lora is not None:
            if v_first is None:
                raise Error("[RWKV7] a layer after the first mixes its values with the first one's", "pass them as v_first")
            v = torch.lerp(v, v_first, self.v_lora(mixed("v")).sigmoid())
        log_w = -SLOWEST * wide(self.w_lora(mixed("w"))).sigmoid()
        a = self.largest * self.a_lora(mixed("a")).sigmoid()
        kk = l2_norm(heads(k * self.k_k.to(k.dtype)), 1e-12)
        k = k * (1 + (a - 1) * self.k_a.to(k.dtype))
        r, k, v, a, log_w = (heads(y) for y in (r, k, v, a, log_w))
        o, state[0] = rwkv7(r, log_w, k, v, kk, a, state[0], cu_seqlens=cu_seqlens)
        normed = self.g_norm(o.reshape(-1, self.g_norm.num_channels).to(self.g_norm.weight.dtype)).to(o.dtype).view_as(o)
        bonus = (r * k * self.r_k.to(r.dtype)).sum(-1, keepdim=True) * v
        return self.o_proj((normed + bonus).flatten(-2) * self.g_lora(mixed("g"))), state
