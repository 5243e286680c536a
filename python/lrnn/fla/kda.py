"""Kimi Delta Attention by fla's names, as of fla-core 0.6.0: the delta rule with a gate per key channel."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from .functions import State, Unsupported, _delta_rule, _only, _refuse, _state_layout, _wide


def _gate(g: Tensor, like: Tensor, A_log: Tensor | None, dt_bias: Tensor | None, lower_bound: float | None) -> Tensor:
    """The logarithm of the gate [B,T,HV,K] from what comes before its activation."""
    g = _wide(g, like)
    if dt_bias is not None:
        g = g + _wide(dt_bias, like).view(g.shape[-2:])
    rate = None if A_log is None else _wide(A_log, like).view(-1, 1).exp()
    if lower_bound is not None:
        return lower_bound * (g if rate is None else rate * g).sigmoid()
    if rate is None:
        raise ValueError("`A_log` must be provided when `use_gate_in_kernel=True` and `lower_bound` is not set.")
    return -rate * F.softplus(g)


def _kda(
    function: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None,
    initial_state: Tensor | None,
    output_final_state: bool,
    norm: bool,
    activate: bool,
    A_log: Tensor | None,
    dt_bias: Tensor | None,
    sigmoid: bool,
    double: bool,
    lower_bound: float | None,
    state_v_first: bool,
    cu_seqlens: Tensor | None,
    fused: bool,
) -> State:
    if g.dim() != 4:
        raise ValueError(f"g must be [B,T,HV,K], a gate per key channel, got {list(g.shape)}")
    if double and not sigmoid:
        raise ValueError("`allow_neg_eigval=True` requires `use_beta_sigmoid_in_kernel=True`.")
    if activate:
        g = _gate(g, k, A_log, dt_bias, lower_bound)
    if sigmoid:
        beta = _wide(beta, k).sigmoid() * (2 if double else 1)
    return _delta_rule(function, q, k, v, g, beta, scale, initial_state, output_final_state, norm, cu_seqlens,
                       state_v_first=state_v_first, out=v.dtype if fused else None)


def chunk_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    safe_gate: bool = False,
    lower_bound: float | None = None,
    disable_recompute: bool = False,
    return_intermediate_states: bool = False,
    state_v_first: bool = False,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_cpu: Tensor | None = None,
    cp_context: Any = None,
    use_graph: bool = False,
    max_num_seqs: int | None = None,
    **kwargs: Any,
) -> State:
    """fla.ops.kda.chunk_kda: q, k [B,T,H,K], v [B,T,HV,V], log gates g [B,T,HV,K], beta [B,T,HV].

    S <- diag(exp(g)) S;  S <- S + beta k (v - S^T k)^T;  o = scale S^T q. With use_gate_in_kernel, A_log [HV] and dt_bias
    [HV K] the gate is -exp(A_log) softplus(g + dt_bias), or lower_bound sigmoid(exp(A_log) (g + dt_bias)).

    >>> q, k, v, g = torch.randn(4, 1, 6, 2, 4)
    >>> o, state = lrnn.fla.chunk_kda(q, k, v, -g.abs(), torch.rand(1, 6, 2), use_qk_l2norm_in_kernel=True)
    >>> o.shape, state
    (torch.Size([1, 6, 2, 4]), None)
    """
    _refuse("chunk_kda", cp_context=cp_context)
    if return_intermediate_states:
        raise Unsupported("[chunk_kda] lrnn has no intermediate states to return (return_intermediate_states)")
    _only("chunk_kda", kwargs, "chunk_size", "A_log", "dt_bias", "transpose_state_layout")
    if kwargs.get("chunk_size", 64) == 16:
        raise ValueError("`chunk_size` must be either 32 or 64 for KDA, got 16.")
    if safe_gate and use_gate_in_kernel:
        if lower_bound is None:
            raise ValueError("`lower_bound` must be specified when `safe_gate=True` and `use_gate_in_kernel=True`.")
        if not -5 <= lower_bound < 0:
            raise ValueError(f"`lower_bound` must be in the safe range [-5, 0), got {lower_bound}.")
    return _kda("chunk_kda", q, k, v, g, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel, use_gate_in_kernel,
                kwargs.get("A_log"), kwargs.get("dt_bias"), use_beta_sigmoid_in_kernel, allow_neg_eigval, lower_bound,
                _state_layout(state_v_first, kwargs), cu_seqlens, fused=False)


def fused_recurrent_kda(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    use_gate_in_kernel: bool = False,
    use_beta_sigmoid_in_kernel: bool = False,
    allow_neg_eigval: bool = False,
    lower_bound: float | None = None,
    state_v_first: bool = False,
    cu_seqlens: Tensor | None = None,
    **kwargs: Any,
) -> State:
    """fla.ops.kda.fused_recurrent_kda: as chunk_kda.

    >>> q, k, v, g = torch.randn(4, 1, 1, 2, 4)
    >>> A_log, dt_bias = torch.zeros(2), torch.zeros(8)
    >>> o, state = lrnn.fla.fused_recurrent_kda(q, k, v, g, torch.rand(1, 1, 2), A_log, dt_bias, use_gate_in_kernel=True,
    ...     output_final_state=True)
    >>> o.shape, state.shape
    (torch.Size([1, 1, 2, 4]), torch.Size([1, 2, 4, 4]))
    """
    _only("fused_recurrent_kda", kwargs, "transpose_state_layout")
    return _kda("fused_recurrent_kda", q, k, v, g, beta, scale, initial_state, output_final_state, use_qk_l2norm_in_kernel,
                use_gate_in_kernel, A_log, dt_bias, use_beta_sigmoid_in_kernel, allow_neg_eigval, lower_bound,
                _state_layout(state_v_first, kwargs), cu_seqlens, fused=True)
