from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..error import Error
from ..ops import delta_product, l2_norm, swiglu
from .parts import RMSNorm, ShortConv, State, inverse_softplus_steps, linear, only, opened, wide

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "elu": lambda x: F.elu(x) + 1, "identity": lambda x: x}


class DeltaProduct(nn.Module):
    """DeltaNet and its relatives: a product of `householders` reflections per token, with or without a gate.

    Args:
        width: of x and y.
        heads, key_dim, value_dim: of the state; value_dim is key_dim without it.
        value_heads: a multiple of heads, which then share keys.
        householders: steps per token. More of them make richer transitions: 2 a rotation, and so on.
        negative: eigenvalues reach -1 (beta up to 2), which is what counting takes. Without it they stay in [0, 1].
        forget_gate: Gated DeltaNet's, one per head.
        gate_per: "head", or "channel" for a forget gate per key channel, as in Kimi Delta Attention.
        output_gate: outputs times silu of a projection of x.
        conv, conv_bias: taps of the short convolutions of q, k and v; 0 for none.
        beta: whether beta is learned; else it is 1, or 2 with `negative`.
        qk_activation: "silu", "relu", "elu" or "identity".
        qk_norm: "l2" or "sum".
        norm_eps: of the norm of the outputs.

    >>> import torch, lrnn
    >>> layer = lrnn.nn.DeltaProduct(64, heads=2, key_dim=32, householders=3, forget_gate=True)
    >>> y, (state, *convolutions) = layer(torch.randn(1, 100, 64))
    >>> state.shape
    torch.Size([1, 2, 32, 32])
    """

    def __init__(
        self,
        width: int,
        heads: int = 4,
        key_dim: int = 32,
        value_dim: int | None = None,
        *,
        value_heads: int | None = None,
        householders: int = 1,
        negative: bool = True,
        forget_gate: bool = False,
        output_gate: bool = False,
        conv: int = 4,
        conv_bias: bool = False,
        beta: bool = True,
        qk_activation: str = "silu",
        qk_norm: str = "l2",
        norm_eps: float = 1e-5,
        gate_per: str = "head",
    ) -> None:
        super().__init__()
        if gate_per not in ("head", "channel") or (gate_per == "channel" and not forget_gate):
            raise Error(f"[{type(self).__name__}] there is no gate_per={gate_per!r} with forget_gate={forget_gate}")
        if qk_activation not in ("silu", *_ACTIVATIONS) or qk_norm not in ("l2", "sum"):
            raise Error(f"[{type(self).__name__}] there is no qk_activation {qk_activation!r} with qk_norm {qk_norm!r}")
        self.heads, self.key_dim, self.value_dim = heads, key_dim, value_dim or key_dim
        self.value_heads = value_heads or heads
        if self.value_heads % heads:
            raise Error(f"[{type(self).__name__}] {heads} heads of keys do not divide {self.value_heads} of values")
        self.householders, self.negative = householders, negative
        self.qk_activation, self.qk_norm = qk_activation, qk_norm
        N, keys, values = householders, heads * key_dim, self.value_heads * self.value_dim
        self.q_proj, self.k_proj, self.v_proj = linear(width, keys), linear(width, N * keys), linear(width, N * values)
        self.b_proj = linear(width, N * self.value_heads) if beta else None
        self.a_proj = self.f_proj = None
        if forget_gate:
            gates = self.value_heads * (key_dim if gate_per == "channel" else 1)
            if gate_per == "channel":
                self.f_proj = nn.Sequential(linear(width, self.value_dim), linear(self.value_dim, gates))
            else:
                self.a_proj = linear(width, gates)
            self.A_log = nn.Parameter(torch.empty(self.value_heads).uniform_(1 if self.f_proj else 0, 16).log())
            self.dt_bias = nn.Parameter(inverse_softplus_steps(gates))
            self.A_log._no_weight_decay = self.dt_bias._no_weight_decay = True  # type: ignore[attr-defined]
        self.q_conv1d = ShortConv(keys, conv, conv_bias) if conv else None
        self.k_conv1d = ShortConv(N * keys, conv, conv_bias) if conv else None
        self.v_conv1d = ShortConv(N * values, conv, conv_bias) if conv else None
        self.g_proj = linear(width, values) if output_gate else None
        self.o_norm = RMSNorm(self.value_dim, norm_eps)
        self.o_proj = linear(values, width)

    def forward(
        self, x: Tensor, state: State | None = None, cu_seqlens: Tensor | None = None
    ) -> tuple[Tensor, State]:
        state = opened(type(self).__name__, state, 4 if self.q_conv1d else 1)
        silu = self.qk_activation == "silu"
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.q_conv1d is not None:
            q, state[1] = self.q_conv1d(q, state[1], silu, cu_seqlens)
            k, state[2] = self.k_conv1d(k, state[2], silu, cu_seqlens)  # type: ignore[misc]
            v, state[3] = self.v_conv1d(v, state[3], True, cu_seqlens)  # type: ignore[misc]
        else:
            v = F.silu(v)
            if silu:
                q, k = F.silu(q), F.silu(k)
        N, H = self.householders, self.heads
        q = self._keys(q.unflatten(-1, (H, self.key_dim)))
        k = self._keys(k.unflatten(-1, (N, H, self.key_dim)))
        v = v.unflatten(-1, (N, self.value_heads, self.value_dim))
        largest = 2.0 if self.negative else 1.0
        if self.b_proj is None:
            beta = torch.full(v.shape[:-1], largest, dtype=x.dtype, device=x.device)
        else:
            # Rounded before it is doubled, as fla does: a step of exactly 2 is a reflection.
            beta = largest * self.b_proj(x).sigmoid().unflatten(-1, (N, self.value_heads))
        o, state[0] = delta_product(q, k, v, beta, self._log_gate(x), state[0], cu_seqlens=cu_seqlens)
        return self._output(self.o_norm(o).flatten(-2), x), state

    def _log_gate(self, x: Tensor) -> Tensor | None:
        if self.f_proj is not None:
            gate: Tensor = F.softplus(wide(self.f_proj(x)) + wide(self.dt_bias)).unflatten(-1, (self.value_heads, self.key_dim))
            return -wide(self.A_log).exp().unsqueeze(-1) * gate
        if self.a_proj is not None:
            return -wide(self.A_log).exp() * F.softplus(wide(self.a_proj(x)) + wide(self.dt_bias))
        return None

    def _output(self, y: Tensor, x: Tensor) -> Tensor:
        out: Tensor = self.o_proj(y if self.g_proj is None else swiglu(self.g_proj(x), y))
        return out

    def _keys(self, x: Tensor) -> Tensor:
        if self.qk_activation != "silu":
            x = _ACTIVATIONS[self.qk_activation](x)
        return l2_norm(x, 1e-6) if self.qk_norm == "l2" else x / x.sum(-1, keepdim=True)


class DeltaNet(DeltaProduct):
    """fla's DeltaNet, with its arguments; `allow_neg_eigval` is DeltaProduct's `negative`.

    >>> import torch, lrnn
    >>> y, state = lrnn.nn.DeltaNet(hidden_size=64, num_heads=2)(torch.randn(1, 10, 64))
    """

    def __init__(
        self,
        mode: str = "chunk",
        d_model: int | None = None,
        hidden_size: int = 1024,
        expand_k: float = 1.0,
        expand_v: float = 1.0,
        num_heads: int = 4,
        use_beta: bool = True,
        use_gate: bool = False,
        use_short_conv: bool = True,
        conv_size: int = 4,
        conv_bias: bool = False,
        allow_neg_eigval: bool = False,
        layer_idx: int | None = None,
        qk_activation: str = "silu",
        qk_norm: str = "l2",
        norm_eps: float = 1e-5,
        **more: object,
    ) -> None:
        only("DeltaNet", more, use_output_norm=())
        width = d_model or hidden_size
        keys, values = round(width * expand_k), round(width * expand_v)
        if keys % num_heads or values % num_heads:
            raise Error(f"[DeltaNet] {num_heads} heads do not divide {keys} channels of keys and {values} of values")
        super().__init__(
            width,
            num_heads,
            keys // num_heads,
            values // num_heads,
            negative=allow_neg_eigval,
            output_gate=use_gate,
            conv=conv_size if use_short_conv else 0,
            conv_bias=conv_bias,
            beta=use_beta,
            qk_activation=qk_activation,
            qk_norm=qk_norm,
            norm_eps=norm_eps,
        )


class GatedDeltaProduct(DeltaProduct):
    """fla's GatedDeltaProduct, with its arguments: `num_householder` steps per token and a forget gate.

    >>> import torch, lrnn
    >>> layer = lrnn.nn.GatedDeltaProduct(hidden_size=64, head_dim=16, num_heads=2, num_householder=3)
    >>> y, state = layer(torch.randn(1, 10, 64))
    """

    def __init__(
        self,
        hidden_size: int = 2048,
        expand_v: float = 2,
        head_dim: int = 256,
        num_heads: int = 6,
        num_v_heads: int | None = None,
        mode: str = "chunk",
        use_output_gate: bool = True,
        use_short_conv: bool = True,
        conv_size: int = 4,
        conv_bias: bool = False,
        layer_idx: int | None = None,
        norm_eps: float = 1e-5,
        use_forget_gate: bool = True,
        allow_neg_eigval: bool = True,
        num_householder: int = 2,
        **more: object,
    ) -> None:
        only(type(self).__name__, more, output_gate_activation=("swish", "silu"))
        values = round(head_dim * expand_v)
        if abs(values - head_dim * expand_v) > 1e-6:
            raise Error(f"[{type(self).__name__}] expand_v = {expand_v} makes no whole number of {head_dim} channels")
        super().__init__(
            hidden_size,
            num_heads,
            head_dim,
            values,
            value_heads=num_v_heads,
            householders=num_householder,
            negative=allow_neg_eigval,
            forget_gate=use_forget_gate,
            output_gate=use_output_gate,
            conv=conv_size if use_short_conv else 0,
            conv_bias=conv_bias,
            norm_eps=norm_eps,
        )


class GatedDeltaNet(GatedDeltaProduct):
    """fla's GatedDeltaNet: one reflection per token, and a gate.

    >>> import torch, lrnn
    >>> layer = lrnn.nn.GatedDeltaNet(hidden_size=64, head_dim=16, num_heads=2, num_v_heads=4)
    >>> y, state = layer(torch.randn(1, 10, 64))
    """

    def __init__(
        self,
        hidden_size: int = 2048,
        expand_v: float = 2,
        head_dim: int = 256,
        num_heads: int = 6,
        num_v_heads: int | None = None,
        mode: str = "chunk",
        use_gate: bool = True,
        use_short_conv: bool = True,
        allow_neg_eigval: bool = False,
        conv_size: int = 4,
        conv_bias: bool = False,
        layer_idx: int | None = None,
        norm_eps: float = 1e-5,
        **more: object,
    ) -> None:
        super().__init__(
            hidden_size,
            expand_v,
            head_dim,
            num_heads,
            num_v_heads,
            mode,
            use_gate,
            use_short_conv,
            conv_size,
            conv_bias,
            layer_idx,
            norm_eps,
            True,
            allow_neg_eigval,
            1,
            **more,
        )


class KimiDeltaAttention(DeltaProduct):
    """fla's KimiDeltaAttention, with its arguments: a forget gate per key channel.

    >>> import torch, lrnn
    >>> layer = lrnn.nn.KimiDeltaAttention(hidden_size=64, head_dim=16, num_heads=2)
    >>> y, state = layer(torch.randn(1, 10, 64))
    """

    def __init__(
        self,
        hidden_size: int = 2048,
        expand_v: float = 1,
        head_dim: int = 128,
        num_heads: int = 16,
        num_v_heads: int | None = None,
        mode: str = "chunk",
        use_short_conv: bool = True,
        allow_neg_eigval: bool = False,
        safe_gate: bool = False,
        lower_bound: float | None = None,
        conv_size: int = 4,
        conv_bias: bool = False,
        layer_idx: int | None = None,
        norm_eps: float = 1e-5,
        **more: object,
    ) -> None:
        only("KimiDeltaAttention", more)
        values = round(head_dim * expand_v)
        if abs(values - head_dim * expand_v) > 1e-6:
            raise Error(f"[KimiDeltaAttention] expand_v = {expand_v} makes no whole number of {head_dim} channels")
        super().__init__(
            hidden_size,
            num_heads,
            head_dim,
            values,
            value_heads=num_v_heads,
            negative=allow_neg_eigval,
            forget_gate=True,
            gate_per="channel",
            conv=conv_size if use_short_conv else 0,
            conv_bias=conv_bias,
            norm_eps=norm_eps,
        )
        self.lower_bound = lower_bound
        if safe_gate:
            nn.init.zeros_(self.A_log)
        wide_values = self.value_heads * values
        self.g_proj = nn.Sequential(linear(hidden_size, values), linear(values, wide_values, bias=True))  # type: ignore[assignment]

    def _log_gate(self, x: Tensor) -> Tensor | None:
        if self.lower_bound is None:
            return super()._log_gate(x)
        assert self.f_proj is not None
        raw: Tensor = (wide(self.f_proj(x)) + wide(self.dt_bias)).unflatten(-1, (self.value_heads, self.key_dim))
        return self.lower_bound * (wide(self.A_log).exp().unsqueeze(-1) * raw).sigmoid()

    def _output(self, y: Tensor, x: Tensor) -> Tensor:
        assert self.g_proj is not None
        out: Tensor = self.o_proj(y * self.g_proj(x).sigmoid())
        return out
