"""fla's norm and its loss of a product on lrnn's kernels, which are faster than fla's on a GPU too.

fla's gradient of the norm has as many programs as the GPU has processors, a row at a time each; its loss multiplies
the weight's gradient in float32 under autocast. What is not taken here is Unsupported, and goes on to fla's own.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from ..ops import linear_cross_entropy
from ..ops import rms_norm as _rms_norm
from . import plain
from .functions import Unsupported

_add_norm, _add_norm_backward = torch.ops.lrnn.add_norm.default, torch.ops.lrnn.add_norm_backward.default
_PLAIN = (Tensor, torch.nn.Parameter)  # no DTensor: its weights are shards


def _only_if(taken: bool, what: str) -> None:
    if not taken:
        raise Unsupported(what)


@functools.cache
def _loads_kernels(device: torch.device) -> None:
    """Inner ops do not load liblrnn_cuda.so; every other op does."""
    with torch.no_grad():
        _rms_norm(torch.ones(1, 8, device=device), torch.ones(8, device=device), 1e-6)


class _ResidualNorm(torch.autograd.Function):
    """The norm of a branch x added to its stream, and the sum; one kernel forward and one backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        total, y = _add_norm(residual, x, weight, eps, x.dtype)
        ctx.save_for_backward(total, weight)
        ctx.eps, ctx.branch = eps, x.dtype
        ctx.set_materialize_grads(False)
        return y, total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor | None, dtotal: Tensor | None) -> tuple[Tensor | None, ...]:
        if dy is None:
            return None if dtotal is None else dtotal.to(ctx.branch), dtotal, None, None
        total, weight = ctx.saved_tensors
        dresidual, dx, dweight = _add_norm_backward(dtotal, dy, total, weight, ctx.eps, ctx.branch)
        return dx, dresidual, dweight, None


def rms_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    residual: Tensor | None = None,
    eps: float = 1e-5,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
) -> Any:
    if x.is_cpu:
        return plain.rms_norm(x, weight, bias, residual, eps, prenorm, residual_in_fp32)
    kinds = (torch.float32, torch.bfloat16)
    _only_if(not torch.compiler.is_compiling(), "[rms_norm] lrnn's kernels for fla's norm are not seen by compilers")
    if weight is None or bias is not None or type(weight) not in _PLAIN or type(x) not in _PLAIN:
        raise Unsupported("[rms_norm] lrnn's kernels take a weight and no bias")
    _only_if(x.dtype in kinds and (residual is None or residual.dtype in kinds), f"[rms_norm] lrnn has no kernel for {x.dtype}")
    _only_if(x.shape[-1] == weight.shape[0] <= 4096, "[rms_norm] lrnn's kernels take rows of up to 4096")
    if residual is None:
        _only_if(not prenorm or not residual_in_fp32 or x.dtype == torch.float32, "[rms_norm] lrnn has no wider copy of the input")
        y = _rms_norm(x, weight.float(), eps)
        return (y, x) if prenorm else y
    _loads_kernels(x.device)
    y, total = _ResidualNorm.apply(x, residual, weight.float(), eps)  # type: ignore[no-untyped-call]
    return (y, total) if prenorm else y


def fused_linear_cross_entropy_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    logit_scale: float = 1.0,
    logit_softcapping: float | None = None,
    num_chunks: int = 8,
    reduction: str = "mean",
    use_l2warp: bool = False,
    l2_penalty_factor: float = 1e-4,
    accumulate_grad_in_fp32: bool = True,
    process_group: Any = None,
) -> Tensor:
    if x.is_cpu:
        return plain.fused_linear_cross_entropy_loss(x, target, weight, bias, ignore_index, label_smoothing, logit_scale,
                                                     logit_softcapping, num_chunks, reduction, use_l2warp, l2_penalty_factor,
                                                     accumulate_grad_in_fp32, process_group)
    usual = bias is None and label_smoothing == 0 and logit_scale == 1 and logit_softcapping is None and not use_l2warp
    _only_if(usual and process_group is None and type(weight) in _PLAIN, "[fused_linear_cross_entropy_loss] lrnn has the plain loss alone")
    half = torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") == torch.float16
    _only_if(not half and weight.dtype != torch.float16, "[fused_linear_cross_entropy_loss] lrnn has no kernels for float16")
    asked = target != ignore_index
    loss, _ = linear_cross_entropy(x, weight, target.masked_fill(~asked, -1))
    return loss / asked.sum().clamp_min(1) if reduction == "mean" else loss
