"""The problems of bench/peers.py that are recurrences: for each op its inputs, its definition in plain torch, our call
and the peer's."""
import math

import torch
import torch.nn.functional as F

from peer_case import Case, in_bfloat16, normal, unit
from peer_row_cases import ROW_CASES


def read(S, k):
    return torch.einsum("bhkv,bhk->bhv", S, k)


def outer(k, v):
    return k.unsqueeze(-1) * v.unsqueeze(-2)


# --------------------------------------------------------------------------- delta rule and product


def delta_definition(x):
    v, beta, log_gate = x["v"], x["beta"], x.get("log_gate")
    q, k = (y.repeat_interleave(v.shape[3] // y.shape[-2], -2) for y in (x["q"], x["k"]))
    B, T, N, H, K = k.shape
    S, o = q.new_zeros(B, H, K, v.shape[-1]), []
    for t in range(T):
        if log_gate is not None:
            gate = log_gate[:, t].exp()  # of a head, or of each of its key channels
            S = S * (gate.unsqueeze(-1) if gate.dim() == 3 else gate[..., None, None])
        for j in range(N):
            error = v[:, t, j] - read(S, k[:, t, j])
            S = S + outer(k[:, t, j], beta[:, t, j, :, None] * error)
        o.append(read(S, q[:, t]))
    return torch.stack(o, 1) * K**-0.5, S


def delta_ours(x, mode):
    return torch.ops.lrnn.delta_product(
        x["q"], x["k"], x["v"], x["beta"], x.get("log_gate"), accuracy=mode)


def fla_delta_rule(x):
    from fla.ops.delta_rule import chunk_delta_rule, fused_recurrent_delta_rule

    rule = fused_recurrent_delta_rule if x["q"].dtype == torch.float32 else chunk_delta_rule
    k, v, beta = (x[name].squeeze(2) for name in ("k", "v", "beta"))
    return rule(x["q"], k, v, beta, output_final_state=True)


def fla_gated_delta_rule(x):
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    k, v, beta = (x[name].squeeze(2) for name in ("k", "v", "beta"))
    return chunk_gated_delta_rule(x["q"], k, v, x["log_gate"], beta, output_final_state=True)


def fla_kda(x):
    from fla.ops.kda import chunk_kda

    k, v, beta = (x[name].squeeze(2) for name in ("k", "v", "beta"))
    return chunk_kda(x["q"], k, v, x["log_gate"], beta, output_final_state=True)


def fla_delta_product(x):
    from fla.ops.gated_delta_product import chunk_gated_delta_product

    k, v, beta = (x[name].flatten(1, 2) for name in ("k", "v", "beta"))
    return chunk_gated_delta_product(x["q"], k, v, x.get("log_gate"), beta,
                                     num_householder=x["k"].shape[2], output_final_state=True)


def delta(B, T, N, H, K, V, gate=False, float32=False, key_heads=None):
    """Fewer key heads than value heads, as Qwen3-Next and Qwen3.5 have them, come with steps up to 1; so do gates of
    key channels (gate="channels"), as Kimi Delta Attention has them."""
    channels = gate == "channels"
    G, largest = key_heads or H, 1 if key_heads or channels else 2

    def inputs():
        x = dict(q=unit(normal(B, T, G, K)), k=unit(normal(B, T, N, G, K)),
                 v=normal(B, T, N, H, V), beta=largest * normal(B, T, N, H).sigmoid())
        if gate:
            x["log_gate"] = F.logsigmoid(normal(B, T, H, *([K] if channels else [])) + 4)
        return x if float32 else in_bfloat16(x, but=("beta", "log_gate"))

    if N > 1:
        theirs, name = fla_delta_product, "chunk_gated_delta_product"
    elif channels:
        theirs, name = fla_kda, "chunk_kda"
    elif gate:
        theirs, name = fla_gated_delta_rule, "chunk_gated_delta_rule"
    else:  # the chunk form refuses float32
        theirs, name = fla_delta_rule, "fused_recurrent_delta_rule" if float32 else "chunk_delta_rule"
    shape = dict(B=B, T=T, N=N, H=H, K=K, V=V, gate=gate, dtype="fp32" if float32 else "bf16")
    if key_heads:
        shape["key_heads"] = key_heads
    return Case("delta_product", shape, inputs, delta_definition, delta_ours, theirs,
                f"fla-core {name}", ("exact",) if float32 else ("fast", "accurate"))


# ------------------------------------------------------------------------------- GLA and RWKV-7


def gla_definition(x):
    q, k, v, gate = x["q"], x["k"], x["v"], x["log_gate"].exp()
    S, o = q.new_zeros(q.shape[0], *q.shape[2:], v.shape[-1]), []
    for t in range(q.shape[1]):
        S = gate[:, t].unsqueeze(-1) * S + outer(k[:, t], v[:, t])
        o.append(read(S, q[:, t]))
    return torch.stack(o, 1) * q.shape[-1]**-0.5, S


def fla_gla(x):
    from fla.ops.gla import chunk_gla

    return chunk_gla(x["q"], x["k"], x["v"], x["log_gate"], output_final_state=True)


def gla(B, T, H, K, V):
    def inputs():
        x = dict(q=normal(B, T, H, K), k=normal(B, T, H, K), v=normal(B, T, H, V),
                 log_gate=F.logsigmoid(normal(B, T, H, K)) / 16)  # as the published layer has it
        return in_bfloat16(x, but=("log_gate",))

    def ours(x, _):
        return torch.ops.lrnn.gated_linear_attention(x["q"], x["k"], x["v"], x["log_gate"])

    return Case("gated_linear_attention", dict(B=B, T=T, H=H, K=K, V=V, dtype="bf16"), inputs,
                gla_definition, ours, fla_gla, "fla-core chunk_gla")


def rwkv7_definition(x):
    r, w, k, v, kk, a = (x[name] for name in ("r", "log_w", "k", "v", "kk", "a"))
    S, o = r.new_zeros(r.shape[0], *r.shape[2:], v.shape[-1]), []
    for t in range(r.shape[1]):
        removed = outer(a[:, t] * kk[:, t], read(S, kk[:, t]))
        S = w[:, t].exp().unsqueeze(-1) * S - removed + outer(k[:, t], v[:, t])
        o.append(read(S, r[:, t]))
    return torch.stack(o, 1), S


def fla_rwkv7(x):
    from fla.ops.rwkv7 import chunk_rwkv7

    return chunk_rwkv7(*(x[name] for name in ("r", "log_w", "k", "v", "kk", "a")),
                       output_final_state=True)


def rwkv7(B, T, H, K, V):
    def inputs():
        x = dict(r=normal(B, T, H, K), log_w=-0.606531 * normal(B, T, H, K).sigmoid(),
                 k=normal(B, T, H, K), v=normal(B, T, H, V), kk=unit(normal(B, T, H, K)),
                 a=normal(B, T, H, K).sigmoid())
        return in_bfloat16(x, but=("log_w",))

    def ours(x, _):
        return torch.ops.lrnn.rwkv7(x["r"], x["log_w"], x["k"], x["v"], x["kk"], x["a"])

    def prepare(x):  # it adds b (a^T S): a = -kk, b = our a times kk
        return x | dict(kk=-x["kk"], a=x["a"] * x["kk"])

    return Case("rwkv7", dict(B=B, T=T, H=H, K=K, V=V, dtype="bf16"), inputs, rwkv7_definition, ours,
                fla_rwkv7, "fla-core chunk_rwkv7", prepare=prepare, other=("kk", "a"))


# ------------------------------------------------------------------------------------ Mamba's scan


def scan_definition(x):
    u, A = x["u"], x["A"]
    h, y = u.new_zeros(u.shape[0], *A.shape), []
    for t in range(u.shape[1]):
        dt = F.softplus(x["delta"][:, t] + x["delta_bias"])
        h = (dt.unsqueeze(-1) * A).exp() * h + (dt * u[:, t]).unsqueeze(-1) * x["B"][:, t].unsqueeze(1)
        y.append(torch.einsum("bdn,bn->bd", h, x["C"][:, t]) + x["D"] * u[:, t])
    return torch.stack(y, 1), h


def mamba_scan(x):
    from mamba_ssm.ops.selective_scan_interface import selective_scan_fn

    y, h = selective_scan_fn(x["u"], x["delta"], x["A"], x["B"], x["C"], x["D"],
                             delta_bias=x["delta_bias"], delta_softplus=True, return_last_state=True)
    return y.transpose(1, 2), h


def scan(B, T, D, N):
    def inputs():
        x = dict(u=normal(B, T, D), delta=normal(B, T, D), A=-(2 * torch.rand(D, N, device="cuda")).exp(),
                 B=normal(B, T, N), C=normal(B, T, N), D=normal(D), delta_bias=normal(D))
        return in_bfloat16(x, but=("A", "D", "delta_bias"))

    def ours(x, _):
        return torch.ops.lrnn.selective_scan(x["u"], x["delta"], x["A"], x["B"], x["C"], x["D"],
                                             delta_bias=x["delta_bias"])

    turned = ("u", "delta", "B", "C")  # it wants time last

    def prepare(x):
        return x | {name: x[name].transpose(1, 2).contiguous() for name in turned}

    return Case("selective_scan", dict(B=B, T=T, D=D, N=N, dtype="bf16"), inputs, scan_definition, ours,
                mamba_scan, "mamba-ssm selective_scan_fn", whole=("A", "D", "delta_bias"),
                prepare=prepare, other=turned)


# ------------------------------------------------------------------------------------------ mLSTM


def mlstm_definition(x):
    q, k, v, i, f = (x[name] for name in ("q", "k", "v", "i", "f"))
    k = k * q.shape[-1]**-0.5
    C, n = q.new_zeros(q.shape[0], *q.shape[2:], v.shape[-1]), q.new_zeros(q.shape[0], *q.shape[2:])
    m, h = q.new_full((q.shape[0], q.shape[2]), -math.inf), []
    for t in range(q.shape[1]):
        kept = F.logsigmoid(f[:, t]) + m
        m = torch.maximum(kept, i[:, t])
        forget, write = (kept - m).exp().unsqueeze(-1), (i[:, t] - m).exp().unsqueeze(-1)
        C = forget.unsqueeze(-1) * C + outer(write * k[:, t], v[:, t])
        n = forget * n + write * k[:, t]
        size = torch.maximum((n * q[:, t]).sum(-1).abs(), (-m).exp()) + 1e-6
        h.append(read(C, q[:, t]) / size.unsqueeze(-1))
    return torch.stack(h, 1), None


def nxai_mlstm(x):
    from mlstm_kernels.torch.chunkwise import mlstm_chunkwise__xl_chunk

    return mlstm_chunkwise__xl_chunk(*(x[name] for name in ("q", "k", "v", "i", "f")), eps=1e-6, chunk_size=128,
                                     autocast_kernel_dtype=torch.bfloat16).transpose(1, 2), None


def mlstm(B, T, H, K, V):
    """Their default kernel for training; of its chunk sizes the one that is its default."""
    def inputs():
        x = dict(q=normal(B, T, H, K), k=normal(B, T, H, K), v=normal(B, T, H, V), i=normal(B, T, H),
                 f=normal(B, T, H) + 4)
        return in_bfloat16(x, but=("i", "f"))

    def ours(x, _):
        return torch.ops.lrnn.mlstm(x["q"], x["k"], x["v"], x["i"], x["f"])[0], None

    turned = ("q", "k", "v", "i", "f")  # it wants heads before time

    def prepare(x):
        return {name: x[name].transpose(1, 2).contiguous() for name in turned}

    return Case("mlstm", dict(B=B, T=T, H=H, K=K, V=V, dtype="bf16"), inputs, mlstm_definition, ours, nxai_mlstm,
                "mlstm_kernels chunkwise--triton_xl_chunk", prepare=prepare, other=turned)


CASES = [
    delta(8, 4096, 1, 16, 128, 128),
    delta(8, 4096, 2, 16, 128, 128),
    delta(8, 4096, 3, 16, 128, 128),
    delta(8, 4096, 4, 16, 128, 128),
    delta(2, 16384, 1, 16, 128, 128),
    delta(8, 4096, 1, 16, 128, 128, gate=True),
    delta(1, 32768, 1, 16, 128, 128, gate=True),
    delta(8, 4096, 2, 16, 128, 128, gate=True),
    delta(8, 4096, 1, 16, 128, 128, gate="channels"),
    delta(1, 8192, 1, 16, 128, 128, gate="channels"),
    *(delta(1, T, 1, H, 128, 128, gate=True, key_heads=G)
      for T in (8192, 32768, 65536) for G, H in ((2, 8), (4, 16), (16, 32), (16, 64))),
    delta(8, 2048, 1, 8, 128, 256),
    delta(256, 64, 1, 4, 32, 32, float32=True),
    gla(8, 2048, 16, 64, 64),
    gla(8, 2048, 8, 128, 128),
    rwkv7(8, 2048, 16, 64, 64),
    gla(1, 16384, 16, 64, 64),
    rwkv7(8, 2048, 32, 64, 64),
    mlstm(8, 1024, 4, 64, 64),
    mlstm(8, 2048, 8, 128, 128),
    mlstm(4, 2048, 4, 256, 512),
    scan(8, 2048, 4096, 16),
    *ROW_CASES,
]
