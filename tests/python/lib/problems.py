"""Small typical calls of every function: name -> (function, tensors by name, options)."""

import torch
import torch.nn.functional as F

import lrnn

SIZES = 2, 5, 2, 3, 4, 6, 8, 4  # B, T, N, H, K, V, D, W
# Inputs that are float32 beside narrower ones, and those that may be.
WIDE = {"selective_scan": {"A", "D", "delta_bias", "state"}, "mlstm": {"C", "n", "m"}, "titans": {"state", "momentum"},
        "ttt": {"W", "b"}, "short_conv": set()}
MAY_BE_WIDE = {"beta", "log_gate", "log_w", "i", "f", "R", "theta", "eta", "alpha", "weight", "bias"}


def wide(name):
    return WIDE.get(name, {"state"})


def cast(name, tensors, dtype, leave=frozenset()):
    """The tensors of the function `name` in this type, as far as they can have it."""
    return {key: x if key in wide(name) | leave else x.to(dtype) for key, x in tensors.items()}


def problems(seed=0, packed=False, sizes=SIZES):
    torch.manual_seed(seed)
    B, T, N, H, K, V, D, W = sizes
    p = (1, B * T) if packed else (B, T)
    r = lambda *shape: torch.randn(*shape)
    unit = lambda *shape: F.normalize(r(*shape), dim=-1)
    q, v = lambda: r(*p, H, K), lambda: r(*p, H, V)
    options = {"cu_seqlens": torch.tensor([0, 3, B * T])} if packed else {}
    yield "delta_product", lrnn.delta_product, dict(
        q=q(), k=unit(*p, N, H, K), v=r(*p, N, H, V), beta=2 * torch.rand(*p, N, H), log_gate=-torch.rand(*p, H),
        state=r(B, H, K, V)), options
    yield "delta_product", lrnn.delta_product, dict(
        q=q(), k=unit(*p, N, H, K), v=r(*p, N, H, V), beta=2 * torch.rand(*p, N, H), log_gate=-torch.rand(*p, H, K),
        state=r(B, H, K, V)), options
    yield "selective_scan", lrnn.selective_scan, dict(
        u=r(*p, D), delta=r(*p, D), A=-torch.rand(D, N), B=r(*p, N), C=r(*p, N), D=r(D), z=r(*p, D), delta_bias=r(D),
        state=r(B, D, N)), options
    yield "gated_linear_attention", lrnn.gated_linear_attention, dict(
        q=q(), k=q(), v=v(), log_gate=-q().abs(), state=r(B, H, K, V)), options
    yield "rwkv7", lrnn.rwkv7, dict(
        r=q(), log_w=-q().abs(), k=q(), v=v(), kk=unit(*p, H, K), a=q().sigmoid(), state=r(B, H, K, V)), options
    yield "mlstm", lrnn.mlstm, dict(
        q=q(), k=q(), v=v(), i=r(*p, H), f=r(*p, H), C=r(B, H, K, V), n=r(B, H, K), m=r(B, H)), options
    yield "slstm", lrnn.slstm, dict(
        wx=r(*p, H, 4, K), R=r(H, K, 4, K) / (2 * K**0.5), bias=r(H, 4, K), state=r(B, 4, H, K).abs()), options
    yield "titans", lrnn.titans, dict(
        q=q(), k=unit(*p, H, K), v=v(), theta=torch.rand(*p, H), eta=torch.rand(*p, H), alpha=torch.rand(*p, H),
        state=r(B, H, K, V), momentum=r(B, H, K, V)), options
    yield "ttt", lrnn.ttt, dict(
        q=r(*p, H, K), k=r(*p, H, K), v=r(*p, H, K), eta=torch.rand(*p, H) / 4, weight=r(H, K), bias=r(H, K),
        W=r(B, 2, H, K, K), b=r(B, 2, H, K)), {"mini_batch": 3, **options}
    yield "short_conv", lrnn.short_conv, dict(x=r(*p, D), weight=r(D, 1, W), bias=r(D), state=r(B, D, W)), options
    if not packed:
        yield "rms_norm", lrnn.rms_norm, dict(x=r(*p, D), weight=r(D)), {"eps": 1e-3}
        yield "l2_norm", lrnn.l2_norm, dict(x=r(*p, D)), {"eps": 1e-3}
        yield "swiglu", lrnn.swiglu, dict(gate=r(*p, D), up=r(*p, D)), {}


def moved(tensors, options, device):
    """Both on this device."""
    return tuple({key: x.to(device) if isinstance(x, torch.Tensor) else x for key, x in some.items()} for some in (tensors, options))


def results(out):
    return out if isinstance(out, tuple) else (out,)


def everything(function, tensors, options):
    """Results, and the gradients of a fixed weighting of them: name -> tensor."""
    leaves = {name: x.detach().clone().requires_grad_() for name, x in tensors.items()}
    out = results(function(**leaves, **options))
    torch.manual_seed(1)
    sum((y.double() * torch.randn(y.shape).to(y.device)).sum() for y in out).backward()
    grads = {f"d{name}": x.grad if x.grad is not None else torch.zeros_like(x) for name, x in leaves.items()}
    return {**{f"result {i}": y.detach() for i, y in enumerate(out)}, **grads}
