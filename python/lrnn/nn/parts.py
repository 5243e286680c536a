"""What the layers are made of."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from ..error import Error
from ..ops import rms_norm, short_conv

State = list["Tensor | None"]


def linear(inputs: int, outputs: int, bias: bool = False) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=bias)


def only(layer: str, given: dict[str, Any], **known: tuple[Any, ...]) -> None:
    """Arguments of fla's that this layer has one way to do: others are refused by name."""
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"{layer}() got an unexpected keyword argument '{name}'")
        if known[name] and value not in known[name]:
            raise Error(f"[{layer}] lrnn has no {name}={value!r}", f"it has {', '.join(map(repr, known[name]))}")


def opened(layer: str, state: State | None, tensors: int) -> State:
    if state is None:
        return [None] * tensors
    if len(state) != tensors:
        raise Error(f"[{layer}] the state has {len(state)} tensors, not {tensors}")
    return list(state)


def wide(x: Tensor) -> Tensor:
    """The logarithm of a gate near 1 needs more digits than 16 bits have."""
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def inverse_softplus_steps(count: int, low: float = 1e-3, high: float = 0.1, least: float = 1e-4) -> Tensor:
    """Biases whose softplus is spread between `low` and `high`, evenly in the logarithm."""
    step = torch.exp(torch.rand(count) * math.log(high / low) + math.log(low)).clamp(min=least)
    return step + torch.log(-torch.expm1(-step))


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.eps)


class ShortConv(nn.Module):
    def __init__(self, channels: int, kernel: int, bias: bool = False) -> None:
        super().__init__()
        bound = 1 / math.sqrt(kernel)
        self.weight = nn.Parameter(torch.empty(channels, 1, kernel).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(channels).uniform_(-bound, bound)) if bias else None

    def forward(self, x: Tensor, state: Tensor | None, silu: bool, cu_seqlens: Tensor | None) -> tuple[Tensor, Tensor]:
        weight = self.weight.to(x.dtype)
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return short_conv(x, weight, bias, state, silu, cu_seqlens)
