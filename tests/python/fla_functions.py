#!/usr/bin/env python3
"""lrnn.fla: fla's functions by its names. Against the recurrences written out in plain torch, outputs
and gradients, for every keyword; and where fla is installed against its own plain versions, with the
same signatures.
"""

import functools
import inspect
import warnings

from lib.harness import close, refused, run  # first: it skips where there is no torch
import torch
import torch.nn.functional as F

import lrnn

B, T, H, K, V = 2, 7, 2, 4, 6
BOUNDS = torch.tensor([0, 3, 4, B * T])


def r(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def by_sequence(dense, tensors, state, bounds, step=1, of=()):
    """A recurrence of dense sequences for packed ones; tensors named in `of` have `step` rows a token."""
    if bounds is None:
        return dense(tensors, state)
    parts = []
    for s, (begin, end) in enumerate(zip(bounds.tolist(), bounds.tolist()[1:])):
        cut = {n: x if x is None else x[:, begin * step:end * step] if n in of else x[:, begin:end] for n, x in tensors.items()}
        parts.append(dense(cut, None if state is None else state[s:s + 1]))
    return torch.cat([o for o, _ in parts], 1), torch.cat([S for _, S in parts])


def delta(q, k, v, beta, g=None, scale=None, state=None, steps=1, bounds=None):
    def dense(x, S):
        S = torch.zeros(x["q"].shape[0], H, K, V).double() if S is None else S
        out = []
        for t in range(x["q"].shape[1]):
            if x["g"] is not None:  # [B,H] or [B,H,K]
                gate = x["g"][:, t].exp()
                S = S * (gate[..., None, None] if gate.dim() == 2 else gate[..., None])
            for j in range(t * steps, (t + 1) * steps):
                key = x["k"][:, j].unsqueeze(-1)
                S = S + x["beta"][:, j][..., None, None] * key @ (x["v"][:, j].unsqueeze(-2) - key.mT @ S)
            out.append((x["q"][:, t].unsqueeze(-2) @ S).squeeze(-2) * (K**-0.5 if scale is None else scale))
        return torch.stack(out, 1), S

    return by_sequence(dense, {"q": q, "k": k, "v": v, "beta": beta, "g": g}, state, bounds, steps, ("k", "v", "beta"))


def dplr(q, w, k, v, a=None, b=None, scale=None, state=None, bounds=None):
    def dense(x, S):
        S = torch.zeros(x["q"].shape[0], H, K, V).double() if S is None else S
        out = []
        for t in range(x["q"].shape[1]):
            rank = 0 if a is None else x["b"][:, t].unsqueeze(-1) @ (x["a"][:, t].unsqueeze(-2) @ S)
            S = S * x["w"][:, t].exp().unsqueeze(-1) + rank + x["k"][:, t].unsqueeze(-1) @ x["v"][:, t].unsqueeze(-2)
            out.append((x["q"][:, t].unsqueeze(-2) @ S).squeeze(-2) * (K**-0.5 if scale is None else scale))
        return torch.stack(out, 1), S

    return by_sequence(dense, {"q": q, "w": w, "k": k, "v": v, "a": a, "b": b}, state, bounds)


def unit(x):
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def same(what, got, want, tensors, limit=1e-10):
    """got and want take the tensors and return (o, state): equal, and so are the gradients of both."""
    torch.manual_seed(3)
    leaves = {n: None if x is None else x.clone().requires_grad_() for n, x in tensors.items()}
    outs = [f(**leaves) for f in (got, want)]
    weights = [torch.randn_like(x) for x in outs[1]]
    grads = []
    for out in outs:
        loss = sum((x * w).sum() for x, w in zip(out, weights))
        grads.append(torch.autograd.grad(loss, [x for x in leaves.values() if x is not None], retain_graph=True))
    for name, x, y in zip(("o", "state"), *outs):
        close(x, y, limit, f"{what}: {name}")
    for name, x, y in zip([n for n, x in leaves.items() if x is not None], *grads):
        close(x, y, limit, f"{what}: d{name}")


def shapes(packed):
    return ((1, B * T), len(BOUNDS) - 1, BOUNDS.int()) if packed else ((B, T), B, None)


def check_delta_rules():
    for packed in (False, True):
        p, S, cu = shapes(packed)
        tensors = dict(q=r(*p, H, K), k=r(*p, H, K), v=r(*p, H, V), beta=2 * torch.rand(*p, H).double(), state=r(S, H, K, V))
        for f in (lrnn.fla.chunk_delta_rule, lrnn.fla.fused_recurrent_delta_rule):
            same(f.__name__, lambda q, k, v, beta, state: f(q, k, v, beta, 0.3, state, True, True, cu),
                 lambda q, k, v, beta, state: delta(unit(q), unit(k), v, beta, None, 0.3, state, 1, cu), tensors)
        tensors["k"] = F.normalize(tensors["k"], dim=-1)
        same("without options", lambda q, k, v, beta: (lrnn.fla.chunk_delta_rule(q, k, v, beta, cu_seqlens=cu)[0],),
             lambda q, k, v, beta: delta(q, k, v, beta, bounds=cu)[:1], {n: tensors[n] for n in ("q", "k", "v", "beta")})
    q, k, v = tensors["q"], tensors["k"], tensors["v"]
    assert lrnn.fla.chunk_delta_rule(q, k, v, tensors["beta"])[1] is None
    o, state = lrnn.fla.fused_recurrent_delta_rule(q, k, v, output_final_state=True)
    close(state, delta(q, k, v, torch.ones(*q.shape[:3]).double())[1], 1e-10, "beta of 1")


def check_gated_delta_rules():
    groups = 2
    for packed in (False, True):
        p, S, cu = shapes(packed)
        h = H * groups
        tensors = dict(q=r(*p, H, K), k=r(*p, H, K), v=r(*p, h, V), g=r(*p, h), beta=r(*p, h), state=r(S, h, V, K), A_log=r(h), dt_bias=r(h))

        def want(q, k, v, g, beta, state, A_log, dt_bias):
            q, k = (unit(x).repeat_interleave(groups, 2) for x in (q, k))
            o, last = delta(q, k, v, 2 * beta.sigmoid(), -A_log.exp() * F.softplus(g + dt_bias), None, state.mT, 1, cu)
            return o, last.mT

        options = dict(output_final_state=True, use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=True,
                       state_v_first=True, cu_seqlens=cu, use_gate_in_kernel=True)
        for f in (lrnn.fla.chunk_gated_delta_rule, lrnn.fla.fused_recurrent_gated_delta_rule):
            same(f.__name__, lambda state, **x: f(**x, initial_state=state, **options), want, tensors)
        plain = dict(q=r(*p, H, K), k=F.normalize(r(*p, H, K), dim=-1), v=r(*p, H, V), g=-r(*p, H).abs(), beta=torch.rand(*p, H).double(),
                     state=r(S, H, K, V))
        for f in (lrnn.fla.chunk_gated_delta_rule, lrnn.fla.fused_recurrent_gated_delta_rule):
            same(f.__name__, lambda state, **x: f(**x, scale=0.7, initial_state=state, output_final_state=True, cu_seqlens=cu),
                 lambda state, **x: delta(**x, scale=0.7, state=state, bounds=cu), plain)


def check_kda():
    groups = 2
    for packed in (False, True):
        p, S, cu = shapes(packed)
        h = H * groups
        tensors = dict(q=r(*p, H, K), k=r(*p, H, K), v=r(*p, h, V), g=r(*p, h, K), beta=r(*p, h), state=r(S, h, V, K), A_log=r(h), dt_bias=r(h * K))
        for bound in (None, -3.0):

            def want(q, k, v, g, beta, state, A_log, dt_bias):
                q, k = (unit(x).repeat_interleave(groups, 2) for x in (q, k))
                g, rate = g + dt_bias.view(h, K), A_log.exp()[:, None]
                g = -rate * F.softplus(g) if bound is None else bound * (rate * g).sigmoid()
                o, last = delta(q, k, v, 2 * beta.sigmoid(), g, None, state.mT, 1, cu)
                return o, last.mT

            options = dict(output_final_state=True, use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=True,
                           state_v_first=True, cu_seqlens=cu, use_gate_in_kernel=True, lower_bound=bound)
            for f in (lrnn.fla.chunk_kda, lrnn.fla.fused_recurrent_kda):
                same(f.__name__, lambda state, **x: f(**x, initial_state=state, **options), want, tensors)
        plain = dict(q=r(*p, H, K), k=F.normalize(r(*p, H, K), dim=-1), v=r(*p, H, V), g=-r(*p, H, K).abs(), beta=torch.rand(*p, H).double(),
                     state=r(S, H, K, V))
        for f in (lrnn.fla.chunk_kda, lrnn.fla.fused_recurrent_kda):
            same(f.__name__, lambda state, **x: f(**x, scale=0.7, initial_state=state, output_final_state=True, cu_seqlens=cu),
                 lambda state, **x: delta(**x, scale=0.7, state=state, bounds=cu), plain)
    q, k, v, g, beta = (plain[n] for n in ("q", "k", "v", "g", "beta"))
    raw = lrnn.fla.chunk_kda(q, k, v, g, beta, use_gate_in_kernel=True, lower_bound=-2.0)[0]
    close(raw, delta(q, k, v, beta, -2 * g.sigmoid())[0], 1e-10, "a bound, and no A_log")
    no = lrnn.fla.Unsupported
    refused(no, "no context parallelism (cp_context)", lrnn.fla.chunk_kda, q, k, v, g, beta, cp_context=object())
    refused(no, "(return_intermediate_states)", lrnn.fla.chunk_kda, q, k, v, g, beta, return_intermediate_states=True)
    refused(ValueError, "`A_log` must be provided", lrnn.fla.chunk_kda, q, k, v, g, beta, use_gate_in_kernel=True)
    refused(ValueError, "`lower_bound` must be specified", lrnn.fla.chunk_kda, q, k, v, g, beta, use_gate_in_kernel=True, safe_gate=True)
    refused(ValueError, "safe range [-5, 0), got -6", lrnn.fla.chunk_kda, q, k, v, g, beta, use_gate_in_kernel=True, safe_gate=True, lower_bound=-6)
    refused(ValueError, "must be either 32 or 64", lrnn.fla.chunk_kda, q, k, v, g, beta, chunk_size=16)
    refused(ValueError, "g must be [B,T,HV,K]", lrnn.fla.chunk_kda, q, k, v, beta, beta)
    refused(ValueError, "requires `use_beta_sigmoid_in_kernel=True`", lrnn.fla.fused_recurrent_kda, q, k, v, g, beta, allow_neg_eigval=True)
    refused(TypeError, "unexpected keyword argument 'gk'", lrnn.fla.fused_recurrent_kda, q, k, v, g, beta, gk=g)


def check_faint_gates():
    """Tokens that forget all but exp(-40) of the state: their gates' gradients are next to nothing, and not rounding errors."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 100, 2, 16)
    g, beta = -torch.rand(1, 100, 2), torch.rand(1, 100, 2)
    g[:, ::3] = -40
    gradients = []
    for kind in (torch.float32, torch.float64):
        x = [t.to(kind).requires_grad_() for t in (q, F.normalize(k, dim=-1), v, g, beta)]
        o, _ = lrnn.fla.chunk_gated_delta_rule(*x)
        gradients.append(torch.autograd.grad(o.square().sum(), x[3])[0].double())
    got, want = gradients
    close(got, want, 1e-5, "gates' gradients")
    assert (got - want)[:, ::3].abs().max() < 1e-12, "a rounding error where nothing is left"


def check_delta_product():
    for packed in (False, True):
        p, S, cu = shapes(packed)
        for N in (1, 3):
            s = (p[0], p[1] * N)
            tensors = dict(q=r(*p, H, K), k=r(*s, H, K), v=r(*s, H, V), g=-r(*p, H).abs(), beta=2 * torch.rand(*s, H).double(), state=r(S, H, K, V))
            for gated in (True, False):
                tensors["g"] = tensors["g"] if gated else None
                same(f"chunk_gated_delta_product, N = {N}",
                     lambda q, k, v, g, beta, state: lrnn.fla.chunk_gated_delta_product(q, k, v, g, beta, N, None, state, True, True, cu),
                     lambda q, k, v, g, beta, state: delta(unit(q), unit(k), v, beta, g, None, state, N, cu), tensors)


def check_gla():
    for packed in (False, True):
        p, S, cu = shapes(packed)
        tensors = dict(q=r(*p, H, K), k=r(*p, H, K), v=r(*p, H, V), g=-r(*p, H, K).abs(), state=r(S, H, V, K))
        want = lambda q, k, v, g, state: (lambda o, last: (o, last.mT))(*dplr(q, g, k, v, scale=0.5, state=state.mT, bounds=cu))
        same("chunk_gla", lambda q, k, v, g, state: lrnn.fla.chunk_gla(q, k, v, g, 0.5, state, True, True, cu), want, tensors)
        same("fused_recurrent_gla", lambda q, k, v, g, state: lrnn.fla.fused_recurrent_gla(q, k, v, g, None, 0.5, state, True, False, True, cu),
             want, tensors)

        def backwards(q, k, v, g, state):
            """Every sequence turned round by itself."""
            ends = BOUNDS.tolist() if packed else [0, T]
            turned = torch.cat([torch.arange(b, a) for b, a in zip(ends, ends[1:])]) if packed else torch.arange(T)
            order = torch.cat([turned[b:a].flip(0) for b, a in zip(ends, ends[1:])])
            o, last = dplr(*(x[:, order] for x in (q, g, k, v)), state=state, bounds=cu)
            return o[:, order], last

        tensors["state"] = tensors["state"].mT
        same("reverse", lambda q, k, v, g, state: lrnn.fla.fused_recurrent_gla(q, k, v, g, None, None, state, True, True, cu_seqlens=cu),
             backwards, tensors)
    q, k, v = tensors["q"], tensors["k"], tensors["v"]
    close(lrnn.fla.fused_recurrent_gla(q, k, v)[0], dplr(q, 0 * k, k, v)[0], 1e-10, "a gate of 1")


def check_rwkv7():
    for packed in (False, True):
        p, S, cu = shapes(packed)
        kk, rate = F.normalize(r(*p, H, K), dim=-1), torch.rand(*p, H, K).double()
        kk[:, 2] = 0  # padding
        kk[:, 4, :, 1] = 0
        tensors = dict(r=r(*p, H, K), w=-r(*p, H, K).abs(), k=r(*p, H, K), v=r(*p, H, V), a=-kk, b=kk * rate, state=r(S, H, K, V))
        want = lambda r, w, k, v, a, b, state: dplr(r, w, k, v, a, b, 0.5, state, cu)
        for f in (lrnn.fla.chunk_rwkv7, lrnn.fla.fused_recurrent_rwkv7):
            same(f.__name__, lambda state, **x: f(**x, scale=0.5, initial_state=state, output_final_state=True, cu_seqlens=cu), want, tensors, 1e-9)
        tensors["b"] = r(*p, H, K)  # nothing to do with a: what comes out is right
        for x, y in zip(lrnn.fla.chunk_rwkv7(*list(tensors.values())[:6], 0.5, tensors["state"], True, cu), want(**tensors)):
            close(x, y, 1e-9, "any a and b")
        del tensors["a"], tensors["b"]
        tensors |= dict(kk=kk, a=rate)
        same("fused_mul_recurrent_rwkv7",
             lambda state, **x: lrnn.fla.fused_mul_recurrent_rwkv7(**x, initial_state=state, output_final_state=True, cu_seqlens=cu),
             lambda r, w, k, v, kk, a, state: dplr(r, w, k, v, -kk, kk * a, 1.0, state, cu), tensors)


def check_causal_conv1d():
    D, W = 5, 3
    for packed in (False, True):
        p, S, cu = shapes(packed)
        tensors = dict(x=r(*p, D), weight=r(D, W), bias=r(D), residual=r(*p, D), state=r(S, D, W))

        def dense(x, state):
            past = torch.cat([state.mT, x["x"]], 1)
            y = F.conv1d(past[:, 1:].mT, tensors_["weight"].unsqueeze(1), tensors_["bias"], groups=D).mT
            return F.silu(y), past[:, past.shape[1] - W:].mT

        def want(x, weight, bias, residual, state):
            tensors_.update(weight=weight, bias=bias)
            y, last = by_sequence(dense, {"x": x}, state, cu)
            return y + residual, last

        tensors_ = {}
        same("causal_conv1d", lambda x, weight, bias, residual, state: lrnn.fla.causal_conv1d(
            x, weight, bias, residual, state, True, "swish", cu_seqlens=cu), want, tensors)
    x, cache = tensors["x"], torch.zeros(1, D, W).double()
    y, _ = lrnn.fla.causal_conv1d(x, tensors["weight"], tensors["bias"], activation="silu")
    steps = [lrnn.fla.causal_conv1d_update(x[:, t:t + 1], cache, None, tensors["weight"], tensors["bias"], "silu")[0] for t in range(x.shape[1])]
    close(torch.cat(steps, 1), y, 1e-12, "token by token")
    heads = lrnn.fla.causal_conv1d(x[..., :4].unflatten(-1, (2, 2)), tensors["weight"][:4])[0]
    close(heads.flatten(2), lrnn.fla.causal_conv1d(x[..., :4], tensors["weight"][:4])[0], 1e-12, "heads apart")


def check_types():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        q, k, v = torch.randn(3, 1, 5, H, K).to(dtype)
        o, state = lrnn.fla.chunk_gated_delta_rule(q, k, v, -torch.rand(1, 5, H), torch.rand(1, 5, H).to(dtype),
                                                   initial_state=torch.randn(1, H, K, K).to(dtype), output_final_state=True)
        assert o.dtype == dtype and state.dtype == torch.float32
        o, state = lrnn.fla.chunk_rwkv7(q, -k.abs(), k, v, -k, k * 0.5, output_final_state=True)
        assert o.dtype == dtype and state.dtype == torch.float32 and o.isfinite().all()

    # Each in a type of its own, as fla's kernels read them: nothing is rounded but what comes out.
    q, k, v, beta = *torch.randn(2, 1, 5, H, K), torch.randn(1, 5, H, K).half(), torch.rand(1, 5, H).half()
    got = {"q": lrnn.fla.chunk_gated_delta_rule(q, k, v, -beta, beta)[0], "v": lrnn.fla.fused_recurrent_gated_delta_rule(q, k, v, -beta, beta=beta)[0]}
    want = lrnn.fla.chunk_gated_delta_rule(q, k, v.float(), -beta.float(), beta.float())[0]
    assert torch.equal(got["q"], want) and torch.equal(got["v"], want.half())
    want = lrnn.fla.chunk_gla(q, k, v.float(), -k.abs())[0]
    assert torch.equal(lrnn.fla.chunk_gla(q, k, v, -k.abs())[0], want.half())
    assert torch.equal(lrnn.fla.fused_recurrent_gla(q, k, v, -k.abs())[0], want)
    assert lrnn.fla.chunk_rwkv7(q, -k.abs(), k, v, -k, k.half())[0].dtype == torch.float16


def check_refusals():
    q, k, v, beta = *torch.randn(3, 2, 5, H, K), torch.rand(2, 5, H)
    fla, no = lrnn.fla, lrnn.fla.Unsupported
    refused(DeprecationWarning, "head_first has been removed", fla.chunk_delta_rule, q, k, v, beta, head_first=True)
    refused(TypeError, "unexpected keyword argument 'use_qk_norm'", fla.chunk_delta_rule, q, k, v, beta, use_qk_norm=True)
    refused(ValueError, "`chunk_size` must be 16, 32, or 64, got 48", fla.chunk_delta_rule, q, k, v, beta, chunk_size=48)
    refused(ValueError, "batch size is expected to be 1 rather than 2", fla.chunk_delta_rule, q, k, v, beta, cu_seqlens=torch.tensor([0, 5]))
    refused(ValueError, "2 sequences need as many", fla.chunk_gla, q[:1], k[:1], v[:1], k[:1], initial_state=torch.zeros(1, H, K, K),
            cu_seqlens=torch.tensor([0, 2, 5]))
    refused(no, "no beta per value channel", fla.fused_recurrent_delta_rule, q, k, v, v)
    refused(TypeError, "q must be floating point, got torch.int32", fla.chunk_delta_rule, q.int(), k, v, beta)
    refused(ValueError, "a gate per head, got [2, 5, 2, 4]", fla.chunk_gated_delta_rule, q, k, v, k, beta)
    refused(lrnn.Error, "accuracy must be fast, accurate or exact, got 'best'", fla.enable, accuracy="best")
    refused(lrnn.Error, "[delta_rule] k must be a Tensor, got list", fla.chunk_delta_rule, q, [k], v, beta)
    refused(no, "no context parallelism (cp_context)", fla.chunk_gated_delta_rule, q, k, v, beta, beta, cp_context=object())
    refused(no, "no gates per key channel (gk)", fla.fused_recurrent_gated_delta_rule, q, k, v, gk=k)
    refused(no, "no gates per value channel (gv)", fla.fused_recurrent_gla, q, k, v, gv=v)
    refused(no, "no convolution without a weight", fla.causal_conv1d, q[..., 0])
    refused(no, "the activation must be silu, swish or None, got 'gelu'", fla.causal_conv1d, q[..., 0], torch.ones(H, 3), activation="gelu")
    refused(ValueError, "requires `use_beta_sigmoid_in_kernel=True`", fla.chunk_gated_delta_rule, q, k, v, beta, beta, allow_neg_eigval=True)
    refused(ValueError, "`A_log` and `g` must be provided", fla.chunk_gated_delta_rule, q, k, v, beta, beta, use_gate_in_kernel=True)
    refused(ValueError, "heads of values cannot share", fla.chunk_gated_delta_rule, q, k, torch.randn(2, 5, 3, K), beta, beta)
    assert issubclass(no, lrnn.Error) and issubclass(lrnn.Error, RuntimeError)


def check_transforms():
    """The delta rules are an op of their own, made of others: vmap makes no loop of it, a compiler looks into it."""
    rule = functools.partial(lrnn.fla.chunk_delta_rule, use_qk_l2norm_in_kernel=True, output_final_state=True)
    q, k, v, beta = r(3, B, T, H, K), r(3, B, T, H, K), r(3, B, T, 2 * H, V), r(3, B, T, 2 * H).sigmoid()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns where it makes a loop of a call
        batch = torch.vmap(rule)(q, k, v, beta)
    for i in range(3):
        for got, want in zip(batch, rule(q[i], k[i], v[i], beta[i])):
            close(got[i], want, 1e-12, "vmap")
    whole = torch.compile(rule, fullgraph=True, dynamic=True, backend="aot_eager")
    for got, want in zip(whole(q[0], k[0], v[0], beta[0]), rule(q[0], k[0], v[0], beta[0])):
        close(got, want, 1e-12, "compiled")


def check_against_fla():
    try:
        import fla  # noqa: F401
        from fla.modules import causal_conv1d as conv
        from fla.ops import delta_rule, gated_delta_product, gated_delta_rule, gla, kda, rwkv7
        from fla.ops.delta_rule.naive import delta_rule_recurrence
        from fla.ops.gated_delta_product.naive import naive_recurrent_gated_delta_product
        from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule
        from fla.ops.generalized_delta_rule.dplr.naive import dplr_recurrence
        from fla.ops.gla.naive import naive_recurrent_gla
        from fla.ops.kda.naive import naive_recurrent_kda
    except ImportError as error:
        print(f"without fla, which cannot be imported here ({error})")
        return
    for name in lrnn.fla.__all__:
        if name == "Unsupported" or name in ("enable", "disable"):
            continue
        theirs = next(getattr(m, name) for m in (delta_rule, gated_delta_rule, gated_delta_product, gla, kda, rwkv7, conv) if hasattr(m, name))
        mine = [(p.name, p.kind, p.default) for p in inspect.signature(getattr(lrnn.fla, name)).parameters.values()]
        wanted = [(p.name, p.kind, p.default) for p in inspect.signature(theirs).parameters.values()]
        assert mine == wanted, f"{name} takes {mine}, and fla's {wanted}"
    p, heads = (B, T), lambda x: x.transpose(1, 2)
    q, k, v = torch.randn(*p, H, K), F.normalize(torch.randn(*p, H, K), dim=-1), torch.randn(*p, H, V)
    g, beta, state = -torch.rand(*p, H), 2 * torch.rand(*p, H), torch.randn(B, H, K, V)
    ours = lambda f, *a, **b: f(*a, **b, initial_state=state, output_final_state=True)
    o, last = delta_rule_recurrence(heads(q), heads(k), heads(v), heads(beta), state)
    theirs = {"delta rule": (heads(o), last),
              "gated delta rule": naive_recurrent_gated_delta_rule(q, k, v, beta, g, None, state, True),
              "delta product": naive_recurrent_gated_delta_product(
                  q, *(x.repeat_interleave(2, 1) for x in (k, v)), g, beta.repeat_interleave(2, 1), K**-0.5, None, state, True, 2),
              "kda": naive_recurrent_kda(q, k, v, -k.abs(), beta, None, state, True),
              "gla": naive_recurrent_gla(q, k, v, -k.abs(), state, True)}
    mine = {"delta rule": ours(lrnn.fla.chunk_delta_rule, q, k, v, beta),
            "gated delta rule": ours(lrnn.fla.chunk_gated_delta_rule, q, k, v, g, beta),
            "delta product": ours(lrnn.fla.chunk_gated_delta_product, q, *(x.repeat_interleave(2, 1) for x in (k, v)), g,
                                  beta.repeat_interleave(2, 1), 2),
            "kda": ours(lrnn.fla.chunk_kda, q, k, v, -k.abs(), beta),
            "gla": ours(lrnn.fla.chunk_gla, q, k, v, -k.abs())}
    o, last = dplr_recurrence(*(heads(x) for x in (q, k)), heads(v[..., :K]), heads(-k), heads(0.5 * k), heads(-k.abs()), state[..., :K])
    theirs["rwkv7"] = heads(o), last
    mine["rwkv7"] = lrnn.fla.chunk_rwkv7(q, -k.abs(), k, v[..., :K], -k, 0.5 * k, K**-0.5, state[..., :K], True)
    for name, want in theirs.items():
        for x, y in zip(mine[name], want):
            close(x, y, 1e-5, f"{name} of fla")


torch.manual_seed(0)
run(globals())
