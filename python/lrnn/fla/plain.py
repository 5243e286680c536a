"""What fla's models need beside the recurrences, on a CPU, where its Triton kernels do not run: norms,
gates and losses by fla's names and arguments, of lrnn's row ops and plain torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..ops import l2_norm as _l2_norm
from ..ops import rms_norm as _rms_norm
from ..ops import swiglu as _swiglu
from .functions import Unsupported


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _normalised(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, rms: bool, groups: int = 1) -> Tensor:
    """In float32: every group of channels by itself, then weight and bias of all of them."""
    rows = x.unflatten(-1, (groups, -1))
    size = rows.shape[-1:]
    y = _rms_norm(rows, rows.new_ones(size), eps) if rms else F.layer_norm(rows, size, eps=eps)
    y = y.flatten(-2)
    y = y if weight is None else y * _wide(weight)
    return y if bias is None else y + _wide(bias)


def _with_residual(x: Tensor, residual: Tensor | None, residual_in_fp32: bool) -> tuple[Tensor, Tensor]:
    """The sum that is normalised, in float32, and what goes on beside it."""
    total = _wide(x) if residual is None else _wide(x) + _wide(residual)
    kept = residual.dtype if residual is not None else torch.float32 if residual_in_fp32 else x.dtype
    return total, total.to(kept)


def group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    residual: Tensor | None = None,
    eps: float = 1e-5,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    is_rms_norm: bool = False,
    num_groups: int = 1,
) -> Any:
    total, beside = _with_residual(x, residual, residual_in_fp32)
    y = _normalised(total, weight, bias, eps, is_rms_norm, num_groups).to(x.dtype)
    return (y, beside) if prenorm else y


def layer_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    residual: Tensor | None = None,
    eps: float = 1e-5,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    is_rms_norm: bool = False,
) -> Any:
    return group_norm(x, weight, bias, residual, eps, prenorm, residual_in_fp32, is_rms_norm)


def rms_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    residual: Tensor | None = None,
    eps: float = 1e-5,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
) -> Any:
    return group_norm(x, weight, bias, residual, eps, prenorm, residual_in_fp32, True)


def _gated(x: Tensor, g: Tensor, activation: str) -> Tensor:
    if activation in ("swish", "silu"):
        return _swiglu(_wide(g), x)
    if activation == "sigmoid":
        return x * _wide(g).sigmoid()
    raise Unsupported(f"[rms_norm_gated] the activation must be swish, silu or sigmoid, got '{activation}'")


def layer_norm_gated(
    x: Tensor,
    g: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    activation: str = "swish",
    residual: Tensor | None = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    eps: float = 1e-6,
    rms: bool = False,
) -> Any:
    total, beside = _with_residual(x, residual, residual_in_fp32)
    y = _gated(_normalised(total, weight, bias, eps, rms), g, activation).to(x.dtype)
    return (y, beside) if prenorm else y


def rms_norm_gated(
    x: Tensor,
    g: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    activation: str = "swish",
    residual: Tensor | None = None,
    prenorm: bool = False,
    residual_in_fp32: bool = False,
    eps: float = 1e-6,
) -> Any:
    return layer_norm_gated(x, g, weight, bias, activation, residual, prenorm, residual_in_fp32, eps, rms=True)


def l2norm(x: Tensor, eps: float = 1e-6, output_dtype: torch.dtype | None = None) -> Tensor:
    y = _l2_norm(x, eps)
    return y if output_dtype is None else y.to(output_dtype)


def swiglu(x: Tensor, y: Tensor) -> Tensor:
    return _swiglu(x, y)


def swiglu_linear(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return F.linear(_swiglu(x, y), weight, bias)


def logsigmoid(x: Tensor, temperature: float = 1.0) -> Tensor:
    return F.logsigmoid(x) / temperature


def elu_p1(x: Tensor) -> Tensor:
    return F.elu(x) + 1


def sqrelu(x: Tensor) -> Tensor:
    """fla compiles its own with Inductor, which takes half a minute the first time."""
    return _wide(x).relu().square().to(x.dtype)


def token_shift(
    x: Tensor,
    cu_seqlens: Tensor | None = None,
    cache: Tensor | None = None,
    output_cache: bool = False,
    chunk_indices: Tensor | None = None,
) -> Any:
    """The token before, less the token itself; before the first there is the cache [N,D], or nothing."""
    before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)
    if cu_seqlens is None:
        first = torch.zeros_like(x[:, 0]) if cache is None else cache.reshape(x.shape[0], -1)
        before, last = torch.cat([first.unsqueeze(1), before[:, 1:]], 1), x[:, -1]
    else:
        starts = cu_seqlens[:-1].long()
        first = x.new_zeros(len(starts), x.shape[-1]) if cache is None else cache.reshape(len(starts), -1)
        before, last = before.index_copy(1, starts, first.unsqueeze(0).to(x.dtype)), x[0, cu_seqlens[1:].long() - 1]
    return (before - x, last) if output_cache else before - x


def cross_entropy_loss(
    logits: Tensor,
    target: Tensor,
    label_smoothing: float = 0.0,
    logit_scale: float = 1.0,
    lse_square_scale: float = 0.0,
    logit_softcapping: float | None = None,
    ignore_index: int = -100,
    inplace_backward: bool = False,
    process_group: Any = None,
) -> tuple[Tensor, Tensor]:
    """Row by row, and the part of it that the squared logsumexp is."""
    if process_group is not None:
        raise Unsupported("[cross_entropy_loss] on a CPU there is no vocabulary in shards (process_group)")
    x = _wide(logits) * logit_scale
    if logit_softcapping is not None:
        x = logit_softcapping * torch.tanh(x / logit_softcapping)
    z = lse_square_scale * torch.logsumexp(x, -1).square().masked_fill(target == ignore_index, 0)
    loss = F.cross_entropy(x, target, ignore_index=ignore_index, reduction="none", label_smoothing=label_smoothing)
    return loss + z, z.detach()


def fused_cross_entropy_forward(self: Any, input: Tensor, target: Tensor) -> Any:
    """fla's FusedCrossEntropyLoss.forward."""
    loss, z = cross_entropy_loss(input, target, self.label_smoothing, self.logit_scale, self.lse_square_scale, self.logit_softcapping,
                                 self.ignore_index, False, self.process_group)
    if self.reduction != "none":
        share = 1 / (target != self.ignore_index).sum() if self.reduction == "mean" else 1
        loss, z = loss.sum() * share, z.sum() * share
    return (loss, z) if self.return_z_loss else loss


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
    if use_l2warp:
        raise Unsupported("[fused_linear_cross_entropy_loss] on a CPU there is no use_l2warp")
    loss, _ = cross_entropy_loss(F.linear(x, weight, bias), target, label_smoothing, logit_scale, 0.0, logit_softcapping, ignore_index,
                                 False, process_group)
    return loss.sum() / ((target != ignore_index).sum() if reduction == "mean" else 1)


def fused_attnres(
    query: Tensor,
    residuals: Sequence[Tensor],
    rms_weight: Tensor,
    output_rms_weight: Tensor | None = None,
    rms_eps: float = 1e-6,
    scale: float = 1.0,
    return_weights: bool = False,
    checkpoint_level: int = 1,
) -> Any:
    """Attention over the residual streams of earlier blocks, one score each. `checkpoint_level` says what fla's
    kernel computes twice, not what it computes."""
    if not residuals:
        raise Unsupported("[fused_attnres] residuals must have at least one tensor")
    sources = torch.stack([_wide(x) for x in residuals])
    score = _rms_norm(sources, _wide(rms_weight.flatten()), rms_eps) @ _wide(query.flatten())
    share = (scale * score).softmax(0)
    mixed = (share.unsqueeze(-1) * sources).sum(0)
    if output_rms_weight is not None:
        mixed = _rms_norm(mixed, _wide(output_rms_weight), rms_eps)
    mixed = mixed.to(residuals[0].dtype)
    return (mixed, share) if return_weights else mixed
