"""Linear RNNs that track state: the recurrences of DeltaNet, DeltaProduct, Mamba, GLA, RWKV-7, xLSTM, Titans and TTT.

Every function takes sequences of any length and a state, and returns outputs and the next state;
gradients flow to every input, the state included. The kernels are those of the program `lrnn`, which
is also `python -m lrnn`.

>>> import torch, lrnn
>>> bits = torch.randint(2, (1, 1000))                   # a word of 1000 bits
>>> one = torch.ones(1, 1000, 1, 1)                      # queries [B,T,H,K]; keys have [B,T,N,H,K]
>>> beta = 2.0 * bits[..., None, None]                   # a 1 reflects the state, a 0 leaves it alone
>>> o, state = lrnn.delta_product(one, one[:, :, None], 0 * one[:, :, None], beta, state=torch.ones(1, 1, 1, 1))
>>> torch.equal((o.flatten() < 0).long(), bits.flatten().cumsum(0) % 2)   # parity, after every bit
True
"""

from . import fla, library, nn  # noqa: F401  (the library registers the ops)
from .error import Error
from .model import Model, load
from .ops import (
    delta_product,
    gated_linear_attention,
    l2_norm,
    linear_cross_entropy,
    mlstm,
    rms_norm,
    rwkv7,
    selective_scan,
    short_conv,
    slstm,
    swiglu,
    titans,
    ttt,
)
from .runs import check, compile, evaluate, explain, extract, spectrum, train, verify  # noqa: A004

__all__ = [
    "Error",
    "Model",
    "check",
    "compile",
    "delta_product",
    "evaluate",
    "explain",
    "extract",
    "fla",
    "gated_linear_attention",
    "l2_norm",
    "linear_cross_entropy",
    "load",
    "mlstm",
    "nn",
    "rms_norm",
    "rwkv7",
    "selective_scan",
    "short_conv",
    "slstm",
    "spectrum",
    "swiglu",
    "titans",
    "train",
    "ttt",
    "verify",
]
