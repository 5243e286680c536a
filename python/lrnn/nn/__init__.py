"""Layers as nn.Modules over the ops: `layer(x, state=None, cu_seqlens=None) -> (y, state)`.

Their parameters are plain ones with the names of fla's layers, where fla has the layer, so that DDP, FSDP2 and torchtitan take
them as they are and checkpoints fit. A state is a list of tensors; without one a sequence begins. With
`cu_seqlens` x is [1,T,width], sequences end to end.

>>> import torch, lrnn
>>> layer = lrnn.nn.DeltaNet(hidden_size=32, num_heads=2, allow_neg_eigval=True)
>>> x = torch.randn(2, 10, 32)
>>> y, state = layer(x)
>>> first, state = layer(x[:, :4])            # in pieces it is the same
>>> rest, state = layer(x[:, 4:], state)
>>> torch.allclose(torch.cat([first, rest], 1), y, atol=1e-6)
True
"""

from .delta_product import DeltaNet, DeltaProduct, GatedDeltaNet, GatedDeltaProduct, KimiDeltaAttention
from .gated_linear_attention import GatedLinearAttention
from .mamba import Mamba
from .rwkv7 import RWKV7
from .titans import Titans
from .ttt import TTT
from .xlstm import MLSTM, SLSTM

__all__ = [
    "DeltaNet",
    "DeltaProduct",
    "GatedDeltaNet",
    "GatedDeltaProduct",
    "GatedLinearAttention",
    "KimiDeltaAttention",
    "MLSTM",
    "Mamba",
    "RWKV7",
    "SLSTM",
    "TTT",
    "Titans",
]
