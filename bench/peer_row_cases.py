"""The problems of bench/peers.py that work on rows: norms, SwiGLU, the short convolution, a language model's head with
its loss. Rows are [B,T,D], the tokens of a batch."""
import torch
import torch.nn.functional as F

from peer_case import Case, in_bfloat16, normal

EPS = 1e-6


def rms_norm(B, T, D):
    def inputs():
        return in_bfloat16(dict(x=normal(B, T, D), weight=1 + 0.1 * normal(D)))

    def definition(x):
        return x["x"] * (x["x"].square().mean(-1, keepdim=True) + EPS).rsqrt() * x["weight"], None

    def theirs(x):
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction

        # Not in place: its default writes over the gradient that comes in, which is wanted again here.
        return LigerRMSNormFunction.apply(x["x"], x["weight"], EPS, 0.0, "llama", False), None

    return Case("rms_norm", dict(B=B, T=T, D=D, dtype="bf16"), inputs, definition,
                lambda x, _: (torch.ops.lrnn.rms_norm(x["x"], x["weight"], EPS), None), theirs,
                "liger-kernel LigerRMSNormFunction", whole=("weight",))


def swiglu(B, T, D):
    """Theirs writes the gradients over its inputs, so it gets some of its own."""
    def inputs():
        return in_bfloat16(dict(gate=normal(B, T, D), up=normal(B, T, D)))

    def theirs(x):
        from liger_kernel.ops.swiglu import LigerSiLUMulFunction

        return LigerSiLUMulFunction.apply(x["gate"], x["up"]), None

    return Case("swiglu", dict(B=B, T=T, D=D, dtype="bf16"), inputs,
                lambda x: (F.silu(x["gate"]) * x["up"], None),
                lambda x, _: (torch.ops.lrnn.swiglu(x["gate"], x["up"]), None), theirs,
                "liger-kernel LigerSiLUMulFunction", prepare=lambda x: {name: t.clone() for name, t in x.items()})


def short_conv(B, T, D, W=4):
    def inputs():
        return in_bfloat16(dict(x=normal(B, T, D), weight=0.5 * normal(D, 1, W)))

    def definition(x):
        y = F.conv1d(F.pad(x["x"].transpose(1, 2), (W - 1, 0)), x["weight"], groups=D)
        return F.silu(y).transpose(1, 2), None

    def theirs(x):
        from fla.modules.causal_conv1d import causal_conv1d

        return causal_conv1d(x["x"], x["weight"].squeeze(1), activation="silu")[0], None

    return Case("short_conv", dict(B=B, T=T, D=D, W=W, dtype="bf16"), inputs, definition,
                lambda x, _: (torch.ops.lrnn.short_conv(x["x"], x["weight"])[0], None), theirs,
                "fla-core causal_conv1d", whole=("weight",))


def linear_cross_entropy(B, T, D, V):
    """The loss is one number; it stands in the place of one token's output."""
    def inputs():
        return in_bfloat16(dict(h=normal(B, T, D), weight=normal(V, D) / D**0.5,
                                target=torch.randint(V, (B, T), device="cuda")))

    def rows(x):
        return x["h"].flatten(0, 1), x["weight"], x["target"].flatten()

    def definition(x):
        h, weight, target = rows(x)
        return F.cross_entropy(h @ weight.t(), target).reshape(1, 1), None

    def ours(x, _):
        h, weight, target = rows(x)
        return torch.ops.lrnn.linear_cross_entropy(h, weight, target, 1 / len(target))[0].reshape(1, 1), None

    def theirs(x):
        from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction

        # The weight's gradient in float32, as ours is added up.
        h, weight, target = rows(x)
        out = LigerFusedLinearCrossEntropyFunction.apply(h, weight, target, None, None, -100, 0.0, 0.0, "mean", None,
                                                         False, torch.float32)
        return out[0].reshape(1, 1), None

    return Case("linear_cross_entropy", dict(B=B, T=T, D=D, V=V, dtype="bf16"), inputs, definition, ours, theirs,
                "liger-kernel LigerFusedLinearCrossEntropyFunction", whole=("weight",))


ROW_CASES = [
    rms_norm(16, 2048, 1024),
    rms_norm(8, 2048, 2048),
    swiglu(16, 2048, 2816),
    short_conv(16, 2048, 1024),
    linear_cross_entropy(16, 2048, 1024, 32000),
    linear_cross_entropy(8, 2048, 2048, 32000),
]
