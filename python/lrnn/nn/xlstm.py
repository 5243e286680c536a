from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..error import Error
from ..ops import mlstm, slstm
from .parts import ShortConv, State, linear, opened


class HeadNorm(nn.Module):
    """LayerNorm of each head by itself, without bias; the gain is 1 + weight."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], eps=self.eps).flatten(-2) * (1 + self.weight).to(x.dtype)


class BlockLinear(nn.Module):
    """A matrix per block of the channels."""

    def __init__(self, blocks: int, inputs: int, outputs: int, deviation: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(blocks, outputs, inputs) * deviation)

    def forward(self, x: Tensor) -> Tensor:
        blocks = x.unflatten(-1, (self.weight.shape[0], self.weight.shape[2]))
        return torch.einsum("...bi,boi->...bo", blocks, self.weight.to(x.dtype))


class MLSTM(nn.Module):
    """xLSTM's cell with a matrix for a state, inside its block's convolution, gates and skip.

    Args:
        width: of x and y.
        heads: of the cell.
        expand: the inner width, as a multiple, rounded up to 64.
        conv: taps of the convolution before q and k.
        block: channels of a block of the projections q, k and v.
        norm_eps: of the norm of the heads.

    >>> import torch, lrnn
    >>> y, (C, n, m, convolution) = lrnn.nn.MLSTM(64, heads=2)(torch.randn(1, 10, 64))
    >>> C.shape
    torch.Size([1, 2, 64, 64])
    """

    def __init__(
        self, width: int, heads: int = 4, expand: float = 2, conv: int = 4, block: int = 4, norm_eps: float = 1e-5
    ) -> None:
        super().__init__()
        inner = math.ceil(expand * width / 64) * 64
        if inner % heads or inner % block:
            raise Error(f"[MLSTM] heads = {heads} and block = {block} must divide the inner width {inner}")
        self.heads = heads
        small = math.sqrt(2 / (5 * width))
        self.x_proj, self.z_proj, self.o_proj = linear(width, inner), linear(width, inner), linear(inner, width)
        for projection, deviation in ((self.x_proj, small), (self.z_proj, small), (self.o_proj, 2 / math.sqrt(width))):
            nn.init.normal_(projection.weight, std=deviation)
        self.conv1d = ShortConv(inner, conv, bias=True)
        self.q_proj, self.k_proj, self.v_proj = (BlockLinear(inner // block, block, block, small) for _ in range(3))
        self.i_gate, self.f_gate = linear(3 * inner, heads), linear(3 * inner, heads)
        nn.init.zeros_(self.i_gate.weight)
        nn.init.zeros_(self.f_gate.weight)
        self.i_bias = nn.Parameter(0.1 * torch.randn(heads))
        self.f_bias = nn.Parameter(torch.linspace(3, 6, heads))
        self.norm = HeadNorm(inner, norm_eps)
        self.skip = nn.Parameter(torch.ones(inner))

    def forward(
        self, x: Tensor, state: State | None = None, cu_seqlens: Tensor | None = None
    ) -> tuple[Tensor, State]:
        state = opened("MLSTM", state, 4)
        inner = self.x_proj(x)
        convolved, state[3] = self.conv1d(inner, state[3], True, cu_seqlens)
        q, k, v = (p(y).flatten(-2) for p, y in ((self.q_proj, convolved), (self.k_proj, convolved), (self.v_proj, inner)))
        together = torch.cat([q, k, v], -1)
        # A forget gate near 1 needs more digits than 16 bits have.
        i = self.i_gate(together).to(self.i_bias.dtype) + self.i_bias
        f = self.f_gate(together).to(self.f_bias.dtype) + self.f_bias
        q, k, v = (y.unflatten(-1, (self.heads, -1)) for y in (q, k, v))
        h, *state[:3] = mlstm(q, k, v, i, f, state[0], state[1], state[2], cu_seqlens=cu_seqlens)
        y = self.norm(h) + self.skip.to(x.dtype) * convolved
        return self.o_proj(y * F.silu(self.z_proj(x))), state


class SLSTM(nn.Module):
    """xLSTM's cell whose gates read its own output: not linear, and sequential.

    Args:
        width: of x and y.
        heads: of the cell; a unit reads the units of its own head.
        conv: taps of a convolution before the gates i and f; 0 for none.
        norm_eps: of the norm of the heads.

    >>> import torch, lrnn
    >>> y, (state,) = lrnn.nn.SLSTM(64, heads=2)(torch.randn(1, 10, 64))
    >>> state.shape
    torch.Size([1, 4, 2, 32])
    """

    def __init__(self, width: int, heads: int = 4, conv: int = 0, norm_eps: float = 1e-5) -> None:
        super().__init__()
        if width % heads:
            raise Error(f"[SLSTM] heads = {heads} must divide the width {width}")
        D, deviation = width // heads, math.sqrt(2 / (5 * width))
        self.if_gates = BlockLinear(heads, D, 2 * D, deviation)
        self.zo_gates = BlockLinear(heads, D, 2 * D, deviation)
        self.recurrent = nn.Parameter(torch.zeros(heads, D, 4, D))
        bias = torch.zeros(heads, 4, D)
        bias[:, 1] = 5 - 12 * (torch.arange(D) / max(1, D - 1)).pow(0.3)  # from units that remember to units that forget
        self.bias = nn.Parameter(bias)
        self.conv1d = ShortConv(width, conv, bias=True) if conv else None
        self.norm = HeadNorm(width, norm_eps)

    def forward(
        self, x: Tensor, state: State | None = None, cu_seqlens: Tensor | None = None
    ) -> tuple[Tensor, State]:
        state = opened("SLSTM", state, 2 if self.conv1d else 1)
        u = x
        if self.conv1d is not None:
            u, state[1] = self.conv1d(x, state[1], True, cu_seqlens)
        D = self.recurrent.shape[1]
        wx = torch.cat([self.if_gates(u), self.zo_gates(x)], -1).unflatten(-1, (4, D))
        h, state[0] = slstm(wx, self.recurrent, self.bias, state[0], cu_seqlens=cu_seqlens)
        return self.norm(h), state
