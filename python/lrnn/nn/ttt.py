from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..ops import swiglu, ttt
from .parts import ShortConv, State, linear, opened, wide


class TTT(nn.Module):
    """TTT-Linear with lrnn's names: what the mixer `ttt` of the program is.

    Args:
        width: of x and y.
        heads, head_dim: inner models, and the channels of one.
        mini_batch: tokens whose gradients are taken at the same weights.
        step: the largest of the inner model, times one over head_dim.
        conv: kernel of the short convolution with SiLU on q, k and v; 0: none.
        output_gate: whether the normed output is multiplied by silu of a projection.
        inner_eps, norm_eps: of the inner model's and the output's layer norm.

    The state is a list of W, b and position (`lrnn.ttt`) and, with a convolution, three states of it.

    >>> import torch, lrnn
    >>> y, state = lrnn.nn.TTT(width=64)(torch.randn(1, 10, 64))
    """

    def __init__(
        self,
        width: int,
        heads: int = 4,
        head_dim: int = 16,
        mini_batch: int = 16,
        step: float = 1,
        conv: int = 0,
        output_gate: bool = False,
        inner_eps: float = 1e-6,
        norm_eps: float = 1e-6,
    ) -> None:
        super().__init__()
        inner = heads * head_dim
        self.heads, self.head_dim, self.mini_batch = heads, head_dim, mini_batch
        self.step, self.inner_eps = step / head_dim, inner_eps
        self.W = nn.Parameter(0.02 * torch.randn(heads, head_dim, head_dim))
        self.b = nn.Parameter(torch.zeros(heads, head_dim))
        self.ttt_norm_weight = nn.Parameter(torch.ones(heads, head_dim))
        self.ttt_norm_bias = nn.Parameter(torch.zeros(heads, head_dim))
        self.q_proj, self.k_proj, self.v_proj = linear(width, inner), linear(width, inner), linear(width, inner)
        self.eta_proj = linear(width, heads, bias=True)
        self.q_conv1d = ShortConv(inner, conv) if conv else None
        self.k_conv1d = ShortConv(inner, conv) if conv else None
        self.v_conv1d = ShortConv(inner, conv) if conv else None
        self.g_proj = linear(width, inner) if output_gate else None
        self.post_norm = nn.LayerNorm(inner, norm_eps)
        self.o_proj = linear(inner, width)

    def forward(
        self, x: Tensor, state: State | None = None, cu_seqlens: Tensor | None = None
    ) -> tuple[Tensor, State]:
        if state is None:
            sequences = x.shape[0] if cu_seqlens is None else cu_seqlens.shape[0] - 1
            state = [y.expand(sequences, 2, *y.shape) for y in (wide(self.W), wide(self.b))]
            state += [torch.zeros(sequences, dtype=state[0].dtype, device=x.device)]  # type: ignore[union-attr]
            state += [None] * (3 if self.q_conv1d else 0)
        state = opened("TTT", state, 6 if self.q_conv1d else 3)
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.q_conv1d is not None:
            q, state[3] = self.q_conv1d(q, state[3], True, cu_seqlens)
            k, state[4] = self.k_conv1d(k, state[4], True, cu_seqlens)  # type: ignore[misc]
            v, state[5] = self.v_conv1d(v, state[5], True, cu_seqlens)  # type: ignore[misc]
        q, k, v = (y.unflatten(-1, (self.heads, self.head_dim)) for y in (q, k, v))
        o, state[0], state[1], state[2] = ttt(
            q, k, v, wide(self.eta_proj(x)).sigmoid() * self.step, self.ttt_norm_weight, self.ttt_norm_bias,
            state[0], state[1], state[2], self.mini_batch, self.inner_eps, cu_seqlens=cu_seqlens
        )
        norm = self.post_norm
        y = F.layer_norm(o.flatten(-2).to(norm.weight.dtype), norm.normalized_shape, norm.weight, norm.bias, norm.eps).to(o.dtype)
        if self.g_proj is not None:
            y = swiglu(self.g_proj(x), y)
        return self.o_proj(y), state
