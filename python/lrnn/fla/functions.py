"""fla's functions, as of fla-core 0.6.0, on lrnn's kernels: the same names, arguments and layouts.

What differs: any device, float32 and float64 too, no compile time, no limits on head sizes. What fla
can do and this cannot is refused by name (`Unsupported`), and so is a keyword that neither knows.
Arguments that only choose among fla's own kernels (chunk_size, safe_gate, lower_bound, backend, ...) or
save it a wait for the GPU (cu_seqlens_cpu, chunk_indices) are taken, and have nothing to change here.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..error import Error, translated
from ..ops import gated_linear_attention, rwkv7, short_conv

State = tuple[Tensor, "Tensor | None"]
_delta_rule_op = torch.ops.lrnn.delta_rule.default  # src/python/delta_rule.cpp
accuracy: str | None = None  # of the delta rules: enable() sets it


class Unsupported(Error):
    """Something that fla has and lrnn has not."""


def _refuse(function: str, **given: Any) -> None:
    meanings = {"cp_context": "context parallelism", "gk": "gates per key channel", "gv": "gates per value channel"}
    for name, value in given.items():
        if value is not None:
            raise Unsupported(f"[{function}] lrnn has no {meanings[name]} ({name})")


def _only(function: str, kwargs: dict[str, Any], *known: str) -> None:
    if not kwargs:
        return
    if "head_first" in kwargs:
        raise DeprecationWarning("head_first has been removed. Inputs must be in `[B, T, H, ...]` format.")
    for name in kwargs:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    if kwargs.get("chunk_size", 64) not in (16, 32, 64):
        raise ValueError(f"`chunk_size` must be 16, 32, or 64, got {kwargs['chunk_size']}.")


def _state_layout(state_v_first: bool, kwargs: dict[str, Any]) -> bool:
    if "transpose_state_layout" not in kwargs:
        return state_v_first
    if state_v_first:
        raise ValueError("Cannot pass both `state_v_first` and the deprecated `transpose_state_layout`.")
    warnings.warn("`transpose_state_layout` is deprecated and renamed to `state_v_first`.", DeprecationWarning, stacklevel=3)
    return bool(kwargs["transpose_state_layout"])


def _check_packed(x: Tensor, state: Tensor | None, cu_seqlens: Tensor | None) -> None:
    if cu_seqlens is None:
        return
    if x.shape[0] != 1:
        raise ValueError(f"The batch size is expected to be 1 rather than {x.shape[0]} when using `cu_seqlens`.")
    if state is not None and state.shape[0] != len(cu_seqlens) - 1:
        raise ValueError(f"{len(cu_seqlens) - 1} sequences need as many initial states, rather than {state.shape[0]}.")


def _wide(x: Tensor, like: Tensor) -> Tensor:
    """What states and gates are kept in beside inputs like these."""
    return _in(x, torch.float64 if like.dtype == torch.float64 else torch.float32)


def _gate(x: Tensor, like: Tensor) -> Tensor:
    return x if x.dtype == like.dtype else _wide(x, like)


def _together(*tensors: Tensor) -> tuple[Tensor, ...]:
    """In one type, the widest of theirs: fla's kernels read each in its own."""
    dtype = tensors[0].dtype
    for x in tensors:
        if x.dtype != dtype:
            break
    else:
        return tensors
    dtype = functools.reduce(torch.promote_types, (x.dtype for x in tensors))
    return tuple(x.to(dtype) for x in tensors)


def _in(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Asking is ten times as fast as a conversion that changes nothing."""
    return x if x.dtype == dtype else x.to(dtype)


def _state_in(state: Tensor | None, like: Tensor, v_first: bool) -> Tensor | None:
    if state is None:
        return None
    return _wide(state.transpose(-1, -2) if v_first else state, like)


def _state_out(state: Tensor, wanted: bool, v_first: bool) -> Tensor | None:
    if not wanted:
        return None
    return state.transpose(-1, -2).contiguous() if v_first else state


def _delta_rule(
    function: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    scale: float | None,
    initial_state: Tensor | None,
    output_final_state: bool,
    norm: bool,
    cu_seqlens: Tensor | None,
    steps: int = 1,
    state_v_first: bool = False,
    out: torch.dtype | None = None,
) -> State:
    """All of them: keys, values and betas of `steps` steps a token lie one after the other."""
    if cu_seqlens is not None:
        _check_packed(q, initial_state, cu_seqlens)
    if beta.dim() == 4:
        raise Unsupported(f"[{function}] lrnn has no beta per value channel, only one per head: [B,T,H]")
    if not q.dtype.is_floating_point:  # the outputs would be rounded to it
        raise TypeError(f"[{function}] q must be floating point, got {q.dtype}")
    try:
        o, last = _delta_rule_op(q, k, v, beta, g, scale, initial_state, norm, cu_seqlens, steps, state_v_first, out, accuracy or "")
    except RuntimeError as error:
        raise translated(error) from None
    return o, _state_out(last, output_final_state, state_v_first)


def chunk_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_cpu: Tensor | None = None,
    **kwargs: Any,
) -> State:
    """fla.ops.delta_rule.chunk_delta_rule: q, k [B,T,H,K], v [B,T,H,V], beta [B,T,H] -> o, state [N,H,K,V] or None.

    >>> q, k, v = torch.randn(3, 1, 6, 2, 4)
    >>> o, state = lrnn.fla.chunk_delta_rule(q, k, v, torch.rand(1, 6, 2), use_qk_l2norm_in_kernel=True)
    >>> o.shape, state
    (torch.Size([1, 6, 2, 4]), None)
    """
    if kwargs:
        _only("chunk_delta_rule", kwargs, "chunk_size")
    return _delta_rule("chunk_delta_rule", q, k, v, None, beta, scale, initial_state, output_final_state,
                       use_qk_l2norm_in_kernel, cu_seqlens)


def fused_recurrent_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: Tensor | None = None,
) -> State:
    """fla.ops.delta_rule.fused_recurrent_delta_rule: as chunk_delta_rule, with a beta of 1 where there is none.

    >>> q, k, v = torch.randn(3, 1, 6, 2, 4)
    >>> o, state = lrnn.fla.fused_recurrent_delta_rule(q, k, v, output_final_state=True)
    >>> state.shape
    torch.Size([1, 2, 4, 4])
    """
    beta = torch.ones_like(q[..., 0]) if beta is None else beta
    return _delta_rule("fused_recurrent_delta_rule", q, k, v, None, beta, scale, initial_state, output_final_state,
                       use_qk_l2norm_in_kernel, cu_seqlens)


def _activated(
    g: Tensor | None, beta: Tensor, like: Tensor, gate: bool, A_log: Tensor | None, dt_bias: Tensor | None, sigmoid: bool, double: bool
) -> tuple[Tensor | None, Tensor]:
    """Gate and beta as the recurrence reads them, where they come before their activations."""
    if gate:
        if A_log is None or g is None:
            raise ValueError("`A_log` and `g` must be provided when `use_gate_in_kernel=True`.")
        g = _wide(g, like)
        g = -_wide(A_log, like).exp() * F.softplus(g if dt_bias is None else g + _wide(dt_bias, like))
    if double and not sigmoid:
        raise ValueError("`allow_neg_eigval=True` requires `use_beta_sigmoid_in_kernel=True`.")
    if sigmoid:
        beta = _wide(beta, like).sigmoid() * (2 if double else 1)
    return g, beta


def chunk_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_cpu: Tensor | None = None,
    chunk_indices: Tensor | None = None,
    cp_context: Any = None,
    **kwargs: Any,
) -> State:
    """fla.ops.gated_delta_rule.chunk_gated_delta_rule: v [B,T,HV,V] may have more heads than q and k, g [B,T,HV] log gates.

    With use_gate_in_kernel, A_log and dt_bias [HV] the gate is -exp(A_log) softplus(g + dt_bias).

    >>> q, k, v = torch.randn(1, 6, 2, 4), torch.randn(1, 6, 2, 4), torch.randn(1, 6, 4, 8)
    >>> g, beta = -torch.rand(1, 6, 4), torch.randn(1, 6, 4)
    >>> o, state = lrnn.fla.chunk_gated_delta_rule(q, k, v, g, beta, use_qk_l2norm_in_kernel=True,
    ...     use_beta_sigmoid_in_kernel=True, allow_neg_eigval=True, output_final_state=True, state_v_first=True)
    >>> o.shape, state.shape
    (torch.Size([1, 6, 4, 8]), torch.Size([1, 4, 8, 4]))
    """
    if cp_context is not None:
        _refuse("chunk_gated_delta_rule", cp_context=cp_context)
    if g is not None and g.dim() == 4:
        raise ValueError(f"g must be [B,T,HV], a gate per head, got {list(g.shape)}; chunk_kda has a gate per key channel")
    gate: Tensor | None = g
    if kwargs or use_beta_sigmoid_in_kernel or allow_neg_eigval:
        _only("chunk_gated_delta_rule", kwargs, "chunk_size", "use_gate_in_kernel", "A_log", "dt_bias", "transpose_state_layout")
        state_v_first = _state_layout(state_v_first, kwargs)
        gate, beta = _activated(g, beta, k, kwargs.get("use_gate_in_kernel", False), kwargs.get("A_log"), kwargs.get("dt_bias"),
                                use_beta_sigmoid_in_kernel, allow_neg_eigval)
    return _delta_rule("chunk_gated_delta_rule", q, k, v, gate, beta, scale, initial_state, output_final_state,
                       use_qk_l2norm_in_kernel, cu_seqlens, state_v_first=state_v_first)


def fused_recurrent_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    gk: Tensor | None = None,
    gv: Tensor | None = None,
    beta: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Tensor | None = None,
    **kwargs: Any,
) -> State:
    """fla.ops.gated_delta_rule.fused_recurrent_gated_delta_rule: as chunk_gated_delta_rule; gk and gv are refused.

    >>> q, k, v = torch.randn(3, 1, 1, 2, 4)
    >>> o, state = lrnn.fla.fused_recurrent_gated_delta_rule(q, k, v, g=-torch.rand(1, 1, 2), output_final_state=True)
    >>> o.shape, state.shape
    (torch.Size([1, 1, 2, 4]), torch.Size([1, 2, 4, 4]))
    """
    _only("fused_recurrent_gated_delta_rule", kwargs, "transpose_state_layout")
    _refuse("fused_recurrent_gated_delta_rule", gk=gk, gv=gv)
    state_v_first = _state_layout(state_v_first, kwargs)
    beta = torch.ones_like(v[..., 0]) if beta is None else beta
    g, beta = _activated(g, beta, k, use_gate_in_kernel, A_log, dt_bias, use_beta_sigmoid_in_kernel, allow_neg_eigval)
    return _delta_rule("fused_recurrent_gated_delta_rule", q, k, v, g, beta, scale, initial_state, output_final_state,
                       use_qk_l2norm_in_kernel, cu_seqlens, state_v_first=state_v_first, out=v.dtype)


def chunk_gated_delta_product(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    num_householder: int,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_cpu: Tensor | None = None,
    cp_context: Any = None,
) -> State:
    """fla.ops.gated_delta_product.chunk_gated_delta_product: k [B,T N,H,K], v [B,T N,H,V], beta [B,T N,H], g [B,T,H] or None.

    >>> q, k, v = torch.randn(1, 6, 2, 4), torch.randn(1, 12, 2, 4), torch.randn(1, 12, 2, 8)
    >>> o, _ = lrnn.fla.chunk_gated_delta_product(q, k, v, None, 2 * torch.rand(1, 12, 2), 2, use_qk_l2norm_in_kernel=True)
    >>> o.shape
    torch.Size([1, 6, 2, 8])
    """
    _refuse("chunk_gated_delta_product", cp_context=cp_context)
    return _delta_rule("chunk_gated_delta_product", q, k, v, g, beta, scale, initial_state, output_final_state,
                       use_qk_l2norm_in_kernel, cu_seqlens, steps=num_householder)


def chunk_gla(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_cpu: Tensor | None = None,
) -> State:
    """fla.ops.gla.chunk_gla: q, k and the log gates g [B,T,H,K], v [B,T,H,V].

    >>> q, k, v, g = torch.randn(4, 1, 6, 2, 4)
    >>> o, state = lrnn.fla.chunk_gla(q, k, v, -g.abs())
    >>> o.shape, state
    (torch.Size([1, 6, 2, 4]), None)
    """
    _check_packed(q, initial_state, cu_seqlens)
    out = v.dtype
    q, k, v = _together(q, k, v)
    start = _state_in(initial_state, k, state_v_first)
    o, last = gated_linear_attention(q, k, v, _gate(g, k), start, scale, cu_seqlens=cu_seqlens)
    return _in(o, out), _state_out(last, output_final_state, state_v_first)


def _reversed(tensors: tuple[Tensor, ...], state: Tensor | None, cu_seqlens: Tensor | None) -> tuple[Any, ...]:
    """The same sequences from the end to the beginning, in the opposite order where they are packed."""
    flipped = tuple(x.flip(1) for x in tensors)
    if cu_seqlens is None:
        return flipped, state, None
    return flipped, None if state is None else state.flip(0), tensors[0].shape[1] - cu_seqlens.flip(0)


def fused_recurrent_gla(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    gk: Tensor | None = None,
    gv: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    reverse: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Tensor | None = None,
    **kwargs: Any,
) -> State:
    """fla.ops.gla.fused_recurrent_gla: as chunk_gla, with a gate of 1 where there is none; gv is refused.

    >>> q, k, v, g = torch.randn(4, 1, 6, 2, 4)
    >>> o, _ = lrnn.fla.fused_recurrent_gla(q, k, v, -g.abs(), reverse=True)
    >>> there, _ = lrnn.fla.chunk_gla(q.flip(1), k.flip(1), v.flip(1), -g.abs().flip(1))
    >>> torch.equal(o, there.flip(1))
    True
    """
    _only("fused_recurrent_gla", kwargs, "transpose_state_layout")
    _refuse("fused_recurrent_gla", gv=gv)
    state_v_first = _state_layout(state_v_first, kwargs)
    gk = torch.zeros_like(k) if gk is None else gk
    out = q.dtype
    q, k, v = _together(q, k, v)
    if not reverse:
        o, last = chunk_gla(q, k, v, gk, scale, initial_state, output_final_state, state_v_first, cu_seqlens)
        return _in(o, out), last
    _check_packed(q, initial_state, cu_seqlens)
    (q, k, v, gk), start, bounds = _reversed((q, k, v, gk), initial_state, cu_seqlens)
    o, last = chunk_gla(q, k, v, gk, scale, start, output_final_state, state_v_first, bounds)
    return _in(o.flip(1), out), last.flip(0) if last is not None and cu_seqlens is not None else last


def _rwkv7(
    r: Tensor, w: Tensor, k: Tensor, v: Tensor, kk: Tensor, a: Tensor, scale: float, state: Tensor | None, wanted: bool, cu_seqlens: Tensor | None
) -> State:
    _check_packed(r, state, cu_seqlens)
    out = v.dtype
    r, k, v, kk, a = _together(r, k, v, kk, a)
    o, last = rwkv7(r, _gate(w, k), k, v, kk, a, _state_in(state, k, False), scale, cu_seqlens=cu_seqlens)
    return _in(o, out), _state_out(last, wanted, False)


def chunk_rwkv7(
    r: Tensor,
    w: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    scale: float | None = 1.0,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_cpu: Tensor | None = None,
    safe_gate: bool = False,
    chunk_size: int | None = None,
    disable_recompute: bool = False,
    cp_context: Any = None,
    lower_bound: float | None = None,
) -> State:
    r"""fla.ops.rwkv7.chunk_rwkv7: S <- diag(exp(w)) S + b (a^T S) + k v^T, o = scale S^T r; all but v are [B,T,H,K].

    lrnn's recurrence has the rank-one term -(c kk)(kk^T S), so kk is a and c is -b/a, channel by channel.
    RWKV-7 has b = -c a with c in [0,1]. Where |b| is much larger than |a| the outputs are as good, while
    the gradient of a loses digits.

    >>> r, k, v, w = torch.randn(4, 1, 6, 2, 4)
    >>> kk, rate = torch.nn.functional.normalize(torch.randn(1, 6, 2, 4), dim=-1), torch.rand(1, 6, 2, 4)
    >>> o, _ = lrnn.fla.chunk_rwkv7(r, -w.abs(), k, v, -kk, kk * rate)
    >>> torch.allclose(o, lrnn.rwkv7(r, -w.abs(), k, v, kk, rate)[0], atol=1e-5)
    True
    """
    _refuse("chunk_rwkv7", cp_context=cp_context)
    if lower_bound is not None and lower_bound >= 0:
        raise ValueError(f"`lower_bound` must be negative (w is a log-decay < 0), got {lower_bound}.")
    scale = k.shape[-1] ** -0.5 if scale is None else scale
    if torch.float16 in (a.dtype, b.dtype):  # its range is too small for what follows
        a, b = a.float(), b.float()
    # 1e-20 more where there is 0: far below what a^T S resolves, and b comes out of the product again.
    direction = a + torch.where(a.detach().abs() < 1e-20, 1e-20, 0.0).to(a.dtype)
    return _rwkv7(r, w, k, v, direction, -b / direction, scale, initial_state, output_final_state, cu_seqlens)


def fused_recurrent_rwkv7(
    r: Tensor,
    w: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = True,
    cu_seqlens: Tensor | None = None,
) -> State:
    """fla.ops.rwkv7.fused_recurrent_rwkv7: as chunk_rwkv7, with a scale of K^-1/2 where there is none.

    >>> x = torch.randn(6, 1, 5, 2, 4)
    >>> lrnn.fla.fused_recurrent_rwkv7(*x)[1].shape
    torch.Size([1, 2, 4, 4])
    """
    return chunk_rwkv7(r, w, k, v, a, b, scale, initial_state, output_final_state, cu_seqlens)


def fused_mul_recurrent_rwkv7(
    r: Tensor,
    w: Tensor,
    k: Tensor,
    v: Tensor,
    kk: Tensor,
    a: Tensor,
    scale: float | None = 1.0,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    reverse: bool = False,
    cu_seqlens: Tensor | None = None,
) -> State:
    """fla.ops.rwkv7.fused_mul_recurrent_rwkv7: lrnn.rwkv7 with fla's order of arguments, and backwards with `reverse`.

    >>> r, k, v, kk, a = torch.randn(5, 1, 6, 2, 4)
    >>> lrnn.fla.fused_mul_recurrent_rwkv7(r, -a.abs(), k, v, kk, a, reverse=True)[0].shape
    torch.Size([1, 6, 2, 4])
    """
    scale = r.shape[-1] ** -0.5 if scale is None else scale
    if not reverse:
        return _rwkv7(r, w, k, v, kk, a, scale, initial_state, output_final_state, cu_seqlens)
    _check_packed(r, initial_state, cu_seqlens)
    (r, w, k, v, kk, a), start, bounds = _reversed((r, w, k, v, kk, a), initial_state, cu_seqlens)
    o, last = _rwkv7(r, w, k, v, kk, a, scale, start, output_final_state, bounds)
    return o.flip(1), last.flip(0) if last is not None and cu_seqlens is not None else last


def _silu(activation: str | None) -> bool:
    if activation not in (None, "silu", "swish"):
        raise Unsupported(f"[causal_conv1d] the activation must be silu, swish or None, got '{activation}'")
    return activation is not None


def causal_conv1d(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool | None = False,
    activation: str | None = None,
    backend: str | None = "triton",
    cu_seqlens: Tensor | None = None,
    cu_seqlens_cpu: Tensor | None = None,
    chunk_indices: Tensor | None = None,
    cp_context: Any = None,
    **kwargs: Any,
) -> State:
    """fla.modules.conv.causal_conv1d: x [B,T,D], weight [D,W], states [N,D,W]; the residual is added last.

    >>> x = torch.tensor([1.0, 2.0, 3.0]).view(1, 3, 1)
    >>> y, state = lrnn.fla.causal_conv1d(x, torch.ones(1, 2), residual=x, output_final_state=True)
    >>> y.flatten().tolist(), state.flatten().tolist()
    ([2.0, 5.0, 8.0], [2.0, 3.0])
    """
    _only("causal_conv1d", kwargs, "seq_idx")
    _refuse("causal_conv1d", cp_context=cp_context)
    if kwargs.get("seq_idx") is not None:
        raise Unsupported("[causal_conv1d] lrnn has no seq_idx; cu_seqlens has the bounds of sequences")
    if backend not in ("triton", "cuda", "mix"):
        raise ValueError(f"Unsupported backend: {backend}")
    if weight is None:
        raise Unsupported("[causal_conv1d] lrnn has no convolution without a weight")
    rows = x.flatten(2)  # heads may lie apart
    narrow = None if bias is None else _gate(bias, x)
    y, last = short_conv(rows, _gate(weight, x).unsqueeze(1), narrow, initial_state, _silu(activation), cu_seqlens)
    y = y.view(x.shape)
    return y if residual is None else y + residual, last if output_final_state else None


def causal_conv1d_update(
    x: Tensor,
    cache: Tensor,
    residual: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    activation: str | None = None,
) -> tuple[Tensor, Tensor]:
    """fla.modules.conv.causal_conv1d_update: one token of N sequences, x [N,D], [N,1,D] or [1,N,D]; the cache [N,D,W] moves on in place.

    >>> cache = torch.zeros(1, 1, 2)
    >>> [lrnn.fla.causal_conv1d_update(torch.full((1, 1), n), cache, weight=torch.ones(1, 2))[0].item() for n in (1.0, 2.0, 3.0)]
    [1.0, 3.0, 5.0]
    """
    if weight is None:
        raise Unsupported("[causal_conv1d_update] lrnn has no convolution without a weight")
    tokens = x.reshape(cache.shape[0], 1, cache.shape[1])
    y, last = short_conv(tokens, _gate(weight, x).unsqueeze(1), None if bias is None else _gate(bias, x), cache, _silu(activation))
    cache.copy_(last)
    y = y.view(x.shape)
    return y if residual is None else y + residual, cache
