from __future__ import annotations

import torch
from torch import Tensor, nn

from ..ops import l2_norm, swiglu, titans
from .parts import RMSNorm, ShortConv, State, linear, opened, wide


class Titans(nn.Module):
    """The linear memory of Titans with lrnn's names: what the mixer `titans` of the program is.

    Args:
        width: of x and y.
        heads, key_dim, value_dim: memories, and the rows and columns of one.
        largest_step: of theta, the step: 1, or 2 which reflects a memory that forgets nothing.
        conv: kernel of the short convolution with SiLU on q, k and v; 0: none.
        output_gate: whether the normed output is multiplied by silu of a projection.
        norm_eps: of the output's RMSNorm.

    The state is a list of memory, momentum and, with a convolution, three states of it.

    >>> import torch, lrnn
    >>> y, state = lrnn.nn.Titans(width=64)(torch.randn(1, 10, 64))
    """

    def __init__(
        self,
        width: int,
        heads: int = 4,
        key_dim: int = 16,
        value_dim: int = 16,
        largest_step: float = 1,
        conv: int = 4,
        output_gate: bool = False,
        norm_eps: float = 1e-6,
    ) -> None:
        super().__init__()
        keys, values = heads * key_dim, heads * value_dim
        self.heads, self.largest_step = heads, largest_step
        self.q_proj, self.k_proj, self.v_proj = linear(width, keys), linear(width, keys), linear(width, values)
        self.gates_proj = linear(width, 3 * heads, bias=True)
        with torch.no_grad():
            self.gates_proj.bias.zero_()[2 * heads :] = -4  # a memory begins by losing 2 % a token
        self.q_conv1d = ShortConv(keys, conv) if conv else None
        self.k_conv1d = ShortConv(keys, conv) if conv else None
        self.v_conv1d = ShortConv(values, conv) if conv else None
        self.g_proj = linear(width, values) if output_gate else None
        self.o_norm = RMSNorm(value_dim, norm_eps)
        self.o_proj = linear(values, width)

    def forward(
        self, x: Tensor, state: State | None = None, cu_seqlens: Tensor | None = None
    ) -> tuple[Tensor, State]:
        state = opened("Titans", state, 5 if self.q_conv1d else 2)
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.q_conv1d is not None:
            q, state[2] = self.q_conv1d(q, state[2], True, cu_seqlens)
            k, state[3] = self.k_conv1d(k, state[3], True, cu_seqlens)  # type: ignore[misc]
            v, state[4] = self.v_conv1d(v, state[4], True, cu_seqlens)  # type: ignore[misc]
        theta, eta, alpha = wide(self.gates_proj(x)).sigmoid().unflatten(-1, (3, self.heads)).unbind(-2)
        q, k, v = (y.unflatten(-1, (self.heads, -1)) for y in (q, k, v))
        o, state[0], state[1] = titans(
            l2_norm(q, 1e-6), l2_norm(k, 1e-6), v, self.largest_step * theta, eta, alpha, state[0], state[1],
            cu_seqlens=cu_seqlens
        )
        y = self.o_norm(o).flatten(-2)
        if self.g_proj is not None:
            y = swiglu(self.g_proj(x), y)
        return self.o_proj(y), state
