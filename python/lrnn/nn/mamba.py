from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..ops import selective_scan
from .parts import ShortConv, State, inverse_softplus_steps, linear, only, opened, wide


class Mamba(nn.Module):
    """Mamba's layer by the names of fla and of the original; with `allow_neg_eigval` transitions are 2 exp(delta A) - 1.

    Args:
        hidden_size, intermediate_size: of x and y, and of the scan, twice as many without it.
        state_size: numbers a channel remembers.
        conv_kernel, use_conv_bias: the short convolution.
        dt_rank, dt_min, dt_max, dt_scale, dt_init_floor: how time steps are made, and where they begin.
        use_bias: of the projections in and out.

    >>> import torch, lrnn
    >>> layer = lrnn.nn.Mamba(hidden_size=64, allow_neg_eigval=True)
    >>> y, (state, convolution) = layer(torch.randn(1, 10, 64))
    >>> state.shape
    torch.Size([1, 128, 16])
    """

    def __init__(
        self,
        hidden_size: int = 2048,
        state_size: int = 16,
        conv_kernel: int = 4,
        use_conv_bias: bool = True,
        intermediate_size: int | None = None,
        dt_rank: int | str = "auto",
        dt_min: float = 0.001,
        dt_max: float = 0.1,
        dt_init: str = "random",
        dt_scale: float = 1.0,
        dt_init_floor: float = 1e-4,
        use_bias: bool = False,
        hidden_act: str = "silu",
        layer_idx: int | None = None,
        allow_neg_eigval: bool = False,
        **more: object,
    ) -> None:
        super().__init__()
        only("Mamba", {**more, "dt_init": dt_init, "hidden_act": hidden_act}, dt_init=("random",), hidden_act=("silu",), backend=())
        inner = intermediate_size or 2 * hidden_size
        self.rank = math.ceil(hidden_size / 16) if dt_rank == "auto" else int(dt_rank)
        self.size, self.negative = state_size, allow_neg_eigval
        self.in_proj = linear(hidden_size, 2 * inner, use_bias)
        self.conv1d = ShortConv(inner, conv_kernel, use_conv_bias)
        self.x_proj = linear(inner, self.rank + 2 * state_size)
        self.dt_proj = linear(self.rank, inner, bias=True)
        deviation = dt_scale / math.sqrt(self.rank)
        nn.init.uniform_(self.dt_proj.weight, -deviation, deviation)
        with torch.no_grad():
            self.dt_proj.bias.copy_(inverse_softplus_steps(inner, dt_min, dt_max, dt_init_floor))
        self.A_log = nn.Parameter(torch.arange(1.0, state_size + 1).log().expand(inner, -1).clone())
        self.D = nn.Parameter(torch.ones(inner))
        self.A_log._no_weight_decay = self.D._no_weight_decay = True  # type: ignore[attr-defined]
        self.out_proj = linear(inner, hidden_size, use_bias)

    def forward(
        self, x: Tensor, state: State | None = None, cu_seqlens: Tensor | None = None
    ) -> tuple[Tensor, State]:
        state = opened("Mamba", state, 2)
        u, z = self.in_proj(x).chunk(2, -1)
        u, state[1] = self.conv1d(u.contiguous(), state[1], True, cu_seqlens)
        step, B, C = self.x_proj(u).split((self.rank, self.size, self.size), -1)
        delta = nn.functional.linear(step, self.dt_proj.weight)
        y, state[0] = selective_scan(
            u,
            delta,
            -wide(self.A_log).exp(),
            B,
            C,
            wide(self.D),
            z,
            wide(self.dt_proj.bias),
            state[0],
            negative=self.negative,
            cu_seqlens=cu_seqlens,
        )
        return self.out_proj(y), state
