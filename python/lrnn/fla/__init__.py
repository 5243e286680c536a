"""flash-linear-attention (fla) on lrnn's kernels: its functions by its own names and arguments, and
enable(), after which fla's own layers and models run on them."""

from .backend import disable, enable
from .functions import (
    Unsupported,
    causal_conv1d,
    causal_conv1d_update,
    chunk_delta_rule,
    chunk_gated_delta_product,
    chunk_gated_delta_rule,
    chunk_gla,
    chunk_rwkv7,
    fused_mul_recurrent_rwkv7,
    fused_recurrent_delta_rule,
    fused_recurrent_gated_delta_rule,
    fused_recurrent_gla,
    fused_recurrent_rwkv7,
)
from .kda import chunk_kda, fused_recurrent_kda

__all__ = [
    "Unsupported",
    "causal_conv1d",
    "causal_conv1d_update",
    "chunk_delta_rule",
    "chunk_gated_delta_product",
    "chunk_gated_delta_rule",
    "chunk_gla",
    "chunk_kda",
    "chunk_rwkv7",
    "disable",
    "enable",
    "fused_mul_recurrent_rwkv7",
    "fused_recurrent_delta_rule",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_gla",
    "fused_recurrent_kda",
    "fused_recurrent_rwkv7",
]
