"""The ops: torch.ops.lrnn.* with names, types and words.

Letters of shapes: B sequences of T tokens, H heads, G of keys, keys of K and values of V channels, N steps or
states, D channels, W taps. What holds for all of them:

* Tensors of a sequence are float32, float64, bfloat16 or float16. States are float32 (float64 beside
  float64). float16 has no kernels of its own: it is computed in float32 and rounded back, which on a
  GPU is slower than bfloat16.
* With `cu_seqlens`, int64 or int32 [S+1], B is 1 and T holds S sequences end to end, from
  cu_seqlens[s] to cu_seqlens[s+1]; states then have S rows.
* Under torch.autocast recurrences and the convolution take the type that is asked for; norms and
  swiglu take the widest of their inputs.
* Second derivatives are refused.
"""

from __future__ import annotations

import torch
from torch import Tensor

from . import library  # noqa: F401  (registers the ops)
from .error import in_our_words

_lrnn = torch.ops.lrnn
_delta_product = _lrnn.delta_product.default
_selective_scan = _lrnn.selective_scan.default
_gated_linear_attention = _lrnn.gated_linear_attention.default
_rwkv7 = _lrnn.rwkv7.default
_mlstm = _lrnn.mlstm.default
_slstm = _lrnn.slstm.default
_titans = _lrnn.titans.default
_ttt = _lrnn.ttt.default
_short_conv = _lrnn.short_conv.default
_rms_norm = _lrnn.rms_norm.default
_l2_norm = _lrnn.l2_norm.default
_swiglu = _lrnn.swiglu.default
_linear_cross_entropy = _lrnn.linear_cross_entropy.default


@in_our_words
def delta_product(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    log_gate: Tensor | None = None,
    state: Tensor | None = None,
    scale: float | None = None,
    *,
    cu_seqlens: Tensor | None = None,
    accuracy: str | None = None,
) -> tuple[Tensor, Tensor]:
    r"""The delta product: DeltaNet, Gated DeltaNet, DeltaProduct and Kimi Delta Attention. Per head, with S [K,V], for each token t::

        S <- exp(log_gate_t) S                  or diag(exp(log_gate_t)) S, with a gate per key channel
        for j = 0 .. N-1:  S <- S + beta_tj k_tj (v_tj - S^T k_tj)^T
        o_t = scale S^T q_t

    With |k| = 1 a step of beta = 1 is a projection and one of beta = 2 a reflection, which is what lets
    it count modulo two.

    Keys and queries may have fewer heads than values (16 for 32 in Qwen3-Next): G heads, of which H is a
    multiple. Head h then reads key head h // (H // G), as after k.repeat_interleave(H // G, -2), but nothing
    is repeated in memory. Gradients of q and k are sums over the heads that read them, in their order.

    Args:
        q: [B,T,G,K], G = H or a divisor of it
        k: [B,T,N,G,K], N steps a token
        v: [B,T,N,H,V]
        beta: [B,T,N,H], of the type of k or float32
        log_gate: [B,T,H], or [B,T,H,K] for a gate per key channel; of the type of k or float32; a gate of 1 without it
        state: [B,H,K,V], zeros without it
        scale: K^-1/2 without it
        cu_seqlens: bounds of packed sequences
        accuracy: the least a kernel must give for bfloat16. "fast": bfloat16 products, fine for
            beta <= 1; "accurate", the default: the state is good to about 1e-3 at beta = 2; "exact":
            the recurrence in float32. Other types are always exact.

    Returns:
        o [B,T,H,V] and the state [B,H,K,V] after the last token

    A reflection twice is the identity:

    >>> key = torch.tensor([0.6, 0.8]).expand(1, 2, 1, 1, 2)
    >>> start = torch.randn(1, 1, 2, 3)
    >>> o, end = lrnn.delta_product(key[:, :, 0], key, torch.zeros(1, 2, 1, 1, 3), torch.full((1, 2, 1, 1), 2.0), state=start)
    >>> o.shape, torch.allclose(start, end, atol=1e-6)
    (torch.Size([1, 2, 1, 3]), True)
    """
    o, last = _delta_product(q, k, v, beta, log_gate, state, scale, cu_seqlens=cu_seqlens, accuracy=accuracy or "")
    return o, last


@in_our_words
def selective_scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    state: Tensor | None = None,
    softplus: bool = True,
    negative: bool = False,
    *,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""The selective scan of Mamba. Per channel d, with the state h [N], for each token t::

        dt = softplus(delta_t + delta_bias)                 or without the softplus
        h <- a h + dt B_t u_t,   a = exp(dt A)              or 2 exp(dt A) - 1 with `negative`
        y_t = (C_t . h + D u_t) silu(z_t)                   D and z where they are given

    With A < 0 the transition lies in [0,1], or in [-1,1] with `negative`.

    Args:
        u, delta, z: [B,T,D]
        A: [D,N], float32
        B, C: [B,T,N]
        D, delta_bias: [D], float32
        state: [B,D,N], zeros without it
        softplus, negative: see above
        cu_seqlens: bounds of packed sequences

    Returns:
        y [B,T,D] and the state [B,D,N] after the last token

    A sum of the inputs, where nothing is forgotten:

    >>> one = torch.ones(1, 4, 1)
    >>> y, h = lrnn.selective_scan(one, one, torch.zeros(1, 1), one, one, softplus=False)
    >>> y.flatten().tolist(), h.item()
    ([1.0, 2.0, 3.0, 4.0], 4.0)
    """
    y, last = _selective_scan(u, delta, A, B, C, D, z, delta_bias, state, softplus, negative, cu_seqlens=cu_seqlens)
    return y, last


@in_our_words
def gated_linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_gate: Tensor,
    state: Tensor | None = None,
    scale: float | None = None,
    negative: bool = False,
    *,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Gated linear attention (GLA). Per head, with S [K,V], for each token t::

        S <- diag(a_t) S + k_t v_t^T,   a_t = exp(log_gate_t)      or 2 exp(log_gate_t) - 1 with `negative`
        o_t = scale S^T q_t

    Args:
        q, k: [B,T,H,K]
        v: [B,T,H,V]
        log_gate: [B,T,H,K], at most 0, of the type of k or float32
        state: [B,H,K,V], zeros without it
        scale: K^-1/2 without it
        negative: see above; an extension of ours
        cu_seqlens: bounds of packed sequences

    Returns:
        o [B,T,H,V] and the state [B,H,K,V] after the last token

    Linear attention is the gate of 1:

    >>> q, k, v = torch.randn(3, 1, 5, 2, 4).double()
    >>> o, state = lrnn.gated_linear_attention(q, k, v, torch.zeros_like(k))
    >>> torch.allclose(state, torch.einsum("bthk,bthv->bhkv", k, v))
    True
    """
    o, last = _gated_linear_attention(q, k, v, log_gate, state, scale, negative, cu_seqlens=cu_seqlens)
    return o, last


@in_our_words
def rwkv7(
    r: Tensor,
    log_w: Tensor,
    k: Tensor,
    v: Tensor,
    kk: Tensor,
    a: Tensor,
    state: Tensor | None = None,
    scale: float = 1.0,
    *,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""The recurrence of RWKV-7. Per head, with S [K,V], for each token t::

        S <- diag(exp(log_w_t)) S - (a_t kk_t)(kk_t^T S) + k_t v_t^T
        o_t = scale S^T r_t

    kk^T S reads the state before its decay.

    Args:
        r, k, kk, a: [B,T,H,K]
        log_w: [B,T,H,K], at most 0, of the type of k or float32
        v: [B,T,H,V]
        state: [B,H,K,V], zeros without it
        scale: of the outputs
        cu_seqlens: bounds of packed sequences

    Returns:
        o [B,T,H,V] and the state [B,H,K,V] after the last token

    With a = 1 and nothing forgotten a key that comes again replaces its value:

    >>> key, value = torch.ones(1, 2, 1, 1), torch.tensor([3.0, 5.0]).view(1, 2, 1, 1)
    >>> o, state = lrnn.rwkv7(key, 0 * key, key, value, key, key)
    >>> o.flatten().tolist()
    [3.0, 5.0]
    """
    o, last = _rwkv7(r, log_w, k, v, kk, a, state, scale, cu_seqlens=cu_seqlens)
    return o, last


@in_our_words
def mlstm(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    i: Tensor,
    f: Tensor,
    C: Tensor | None = None,
    n: Tensor | None = None,
    m: Tensor | None = None,
    scale: float | None = None,
    eps: float = 1e-6,
    *,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""The mLSTM cell of xLSTM. Per head, with k' = scale k, for each token::

        m' = max(log sigmoid(f) + m, i)                     m = -inf before the first token
        C' = exp(log sigmoid(f) + m - m') C + exp(i - m') k' v^T
        n' = exp(log sigmoid(f) + m - m') n + exp(i - m') k'
        h  = C'^T q / (max(|n' . q|, exp(-m')) + eps)

    Args:
        q, k: [B,T,H,K]
        v: [B,T,H,V]
        i, f: [B,T,H], before the exponential and the sigmoid, of the type of q or float32
        C, n, m: the state, [B,H,K,V], [B,H,K] and [B,H]: all or none
        scale: K^-1/2 without it
        eps: keeps the division finite
        cu_seqlens: bounds of packed sequences

    Returns:
        h [B,T,H,V], and C, n, m after the last token

    >>> q, k, v = torch.randn(3, 2, 5, 3, 4)
    >>> i, f = torch.randn(2, 2, 5, 3)
    >>> h, *state = lrnn.mlstm(q, k, v, i, f)
    >>> first, *half = lrnn.mlstm(q[:, :2], k[:, :2], v[:, :2], i[:, :2], f[:, :2])   # two halves are the whole
    >>> second, *_ = lrnn.mlstm(q[:, 2:], k[:, 2:], v[:, 2:], i[:, 2:], f[:, 2:], *half)
    >>> torch.allclose(torch.cat([first, second], 1), h, atol=1e-4)
    True
    """
    h, last_C, last_n, last_m = _mlstm(q, k, v, i, f, C, n, m, scale, eps, cu_seqlens=cu_seqlens)
    return h, last_C, last_n, last_m


@in_our_words
def slstm(
    wx: Tensor,
    R: Tensor,
    bias: Tensor | None = None,
    state: Tensor | None = None,
    *,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""The sLSTM cell of xLSTM. Per head and unit, with a state (h, c, n, m), for each token::

        (i, f, z, o) = wx + R h + bias
        a  = log sigmoid(f) + m          m' = i where n = 0, the first step, and max(i, a) after it
        c' = exp(a - m') c + exp(i - m') tanh(z)
        n' = exp(a - m') n + exp(i - m')
        h' = sigmoid(o) c' / n'

    Args:
        wx: [B,T,H,4,D], what the gates i, f, z, o get from the input
        R: [H,D,4,D], from unit to gate and unit, of the type of wx or float32
        bias: [H,4,D], of the type of wx or float32, zeros without it
        state: [B,4,H,D], zeros without it
        cu_seqlens: bounds of packed sequences

    Returns:
        h [B,T,H,D] and the state [B,4,H,D] after the last token

    >>> h, state = lrnn.slstm(torch.randn(2, 5, 3, 4, 8), torch.zeros(3, 8, 4, 8))
    >>> h.shape, torch.equal(h[:, -1], state[:, 0])
    (torch.Size([2, 5, 3, 8]), True)
    """
    h, last = _slstm(wx, R, bias, state, cu_seqlens=cu_seqlens)
    return h, last


@in_our_words
def titans(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    theta: Tensor,
    eta: Tensor,
    alpha: Tensor,
    state: Tensor | None = None,
    momentum: Tensor | None = None,
    scale: float = 1.0,
    *,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""The linear memory of Titans. Per head, with the memory M and its momentum S, both [K,V], for each token t::

        S <- eta_t S - theta_t k_t (M^T k_t - v_t)^T
        M <- (1 - alpha_t) M + S
        o_t = scale M^T q_t

    The gradient is taken at the memory of the token before, and before it forgets. With |k| = 1 and gates
    in [0,1] no eigenvalue of a token's transition is larger than 1 if theta <= (2 - alpha)(1 + eta).

    Args:
        q, k: [B,T,H,K]
        v: [B,T,H,V]
        theta, eta, alpha: [B,T,H], the step, what is kept of the momentum and what is lost of the memory, of the
            type of k or float32
        state, momentum: [B,H,K,V], zeros without them
        scale: of the outputs
        cu_seqlens: bounds of packed sequences

    Returns:
        o [B,T,H,V], and memory and momentum, [B,H,K,V] each, after the last token

    Without friction a memory swings; with theta = 1 it is back after six tokens:

    >>> one = torch.ones(1, 6, 1, 1)
    >>> o, M, S = lrnn.titans(one, one, 0 * one, one[..., 0], one[..., 0], 0 * one[..., 0], torch.ones(1, 1, 1, 1))
    >>> o.flatten().tolist()
    [0.0, -1.0, -1.0, 0.0, 1.0, 1.0]
    """
    o, last, last_momentum = _titans(q, k, v, theta, eta, alpha, state, momentum, scale, cu_seqlens=cu_seqlens)
    return o, last, last_momentum


@in_our_words
def ttt(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    eta: Tensor,
    weight: Tensor,
    bias: Tensor,
    W: Tensor | None = None,
    b: Tensor | None = None,
    position: Tensor | None = None,
    mini_batch: int = 16,
    eps: float = 1e-6,
    *,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""TTT-Linear. Per head, with an inner model f of weights W [D,D] and b [D], for each token t::

        f(x; W, b) = x + LN(W^T x + b)                      LN: a layer norm with weight, bias and eps
        W, b <- W, b - eta_t (the gradient of |f(k_t) - v_t|^2 / 2 by W and b, at the W and b with which
                              the mini-batch of token t began)
        o_t = f(q_t; W, b)

    Mini-batches are counted from the beginning of a sequence. The state holds W and b as they are now and as
    they were when the mini-batch began, and how many of its tokens have been seen, so a sequence may be cut
    anywhere.

    Args:
        q, k, v: [B,T,H,D]
        eta: [B,T,H], the step, of the type of k or float32
        weight, bias: [H,D], of the norm, of the type of k or float32
        W, b, position: the state, [B,2,H,D,D], [B,2,H,D] and [B], zeros without them
        mini_batch: tokens, 1 to 64
        eps: inside the square root of the norm
        cu_seqlens: bounds of packed sequences

    Returns:
        o [B,T,H,D], and W, b and position after the last token

    >>> q, k, v = torch.randn(3, 1, 6, 2, 8).double()
    >>> eta, one = torch.full((1, 6, 2), 0.1).double(), torch.ones(2, 8).double()
    >>> o, *state = lrnn.ttt(q, k, v, eta, one, 0 * one, mini_batch=4)
    >>> first, *half = lrnn.ttt(q[:, :3], k[:, :3], v[:, :3], eta[:, :3], one, 0 * one, mini_batch=4)
    >>> second, *_ = lrnn.ttt(q[:, 3:], k[:, 3:], v[:, 3:], eta[:, 3:], one, 0 * one, *half, mini_batch=4)
    >>> torch.allclose(torch.cat([first, second], 1), o), state[2].item()
    (True, 2.0)
    """
    o, last_W, last_b, last_position = _ttt(
        q, k, v, eta, weight, bias, W, b, position, mini_batch, eps, cu_seqlens=cu_seqlens
    )
    return o, last_W, last_b, last_position


@in_our_words
def short_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    state: Tensor | None = None,
    silu: bool = True,
    cu_seqlens: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    r"""A short causal convolution, channel by channel::

        y_t[d] = silu( sum_w weight[d,0,w] x_{t-(W-1)+w}[d] + bias[d] )       or without the silu

    Args:
        x: [B,T,D]
        weight: [D,1,W], of the type of x or float32
        bias: [D], of the type of x or float32, zeros without it
        state: [B,D,W], the last W inputs with the newest last; zeros without it
        silu: see above
        cu_seqlens: bounds of packed sequences

    Returns:
        y [B,T,D] and the state [B,D,W] after the last token

    >>> x = torch.tensor([1.0, 2.0, 3.0]).view(1, 3, 1)
    >>> y, state = lrnn.short_conv(x, torch.ones(1, 1, 2), silu=False)
    >>> y.flatten().tolist(), state.flatten().tolist()
    ([1.0, 3.0, 5.0], [2.0, 3.0])
    """
    y, last = _short_conv(x, weight, bias, state, silu, cu_seqlens)
    return y, last


@in_our_words
def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight, over the last dimension; x [..,D], weight [D], of the type of x or float32.

    >>> lrnn.rms_norm(torch.tensor([3.0, 4.0]), torch.ones(2), 0.0).square().mean().item()
    1.0
    """
    y: Tensor = _rms_norm(x, weight, eps)
    return y


@in_our_words
def l2_norm(x: Tensor, eps: float) -> Tensor:
    """x / sqrt(sum(x^2) + eps), over the last dimension; x [..,D].

    >>> [round(value, 3) for value in lrnn.l2_norm(torch.tensor([3.0, 4.0]), 0.0).tolist()]
    [0.6, 0.8]
    """
    y: Tensor = _l2_norm(x, eps)
    return y


@in_our_words
def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, element by element, of two tensors of one shape.

    >>> gate, up = torch.randn(2, 3, 4)
    >>> torch.allclose(lrnn.swiglu(gate, up), torch.nn.functional.silu(gate) * up)
    True
    """
    y: Tensor = _swiglu(gate, up)
    return y


@in_our_words
def linear_cross_entropy(h: Tensor, weight: Tensor, target: Tensor, share: float = 1.0) -> tuple[Tensor, Tensor]:
    r"""The head of a language model and its loss, without ever holding all logits. With x = h weight^T,
    over the rows r that have a target::

        loss  = share sum_r (log sum_v exp(x_rv) - x_r,target)
        right = how many rows have their largest logit at the target

    4,096 rows are worked through at a time, gradients and all, so that backward only scales. The weight's
    gradient is added up in float32; beside an h in bfloat16 the weight may be float32, as its gradient
    then is.

    Args:
        h: [..,D]
        weight: [V,D], of any type; it is read in the type of h
        target: [..], int64 or int32; below 0: none
        share: what the sum is multiplied by; 1 over the number of targets gives the mean

    Returns:
        loss and right, a number each, float32 (float64 beside float64); right has no derivative

    >>> h, weight, target = torch.randn(6, 4), torch.randn(10, 4), torch.tensor([3, 1, -100, 4, 1, 5])
    >>> loss, right = lrnn.linear_cross_entropy(h, weight, target, share=1 / 5)
    >>> torch.allclose(loss, torch.nn.functional.cross_entropy(h @ weight.T, target))
    True
    """
    loss, right = _linear_cross_entropy(h.reshape(-1, h.shape[-1]), weight, target.reshape(-1), share)
    return loss, right
