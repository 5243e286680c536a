"""lrnn under fla: after enable() fla's own layers and models run on lrnn's kernels, on CPUs too.

Where fla lets back ends in (chunk_gated_delta_rule) lrnn is one of them; elsewhere the function of that
name is replaced, wherever fla or transformers hold it. On a GPU what lrnn has not, and float16, which it
has no kernels for, goes on to fla's own; beside the recurrences the norm and the loss of a product are lrnn's there. FLA_LRNN=0 in the environment leaves everything to fla.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..error import Error
from . import functions, kda, plain, rows
from .functions import Unsupported

# Of these modules of fla, on every device.
KERNELS = {
    "fla.ops.delta_rule": ("chunk_delta_rule", "fused_recurrent_delta_rule"),
    "fla.ops.gated_delta_rule": ("fused_recurrent_gated_delta_rule",),
    "fla.ops.gated_delta_product": ("chunk_gated_delta_product",),
    "fla.ops.gla": ("chunk_gla", "fused_recurrent_gla"),
    "fla.ops.kda": ("chunk_kda", "fused_recurrent_kda"),
    "fla.ops.rwkv7": ("chunk_rwkv7", "fused_mul_recurrent_rwkv7", "fused_recurrent_rwkv7"),
    "fla.modules.causal_conv1d": ("causal_conv1d", "causal_conv1d_update"),
}
# What stands around them: on GPUs where lrnn's kernels are faster,
AROUND: dict[str, dict[str, Callable[..., Any]]] = {
    "fla.modules.norm.layernorm": {"rms_norm": rows.rms_norm},
    "fla.modules.fused_linear_cross_entropy.ops": {"fused_linear_cross_entropy_loss": rows.fused_linear_cross_entropy_loss},
}
# and on a CPU alone.
ON_A_CPU: dict[str, dict[str, Callable[..., Any]]] = {
    "fla.modules.norm.layernorm": {"layer_norm": plain.layer_norm, "group_norm": plain.group_norm},
    "fla.modules.norm.fused_norm_gate": {"layer_norm_gated": plain.layer_norm_gated, "rms_norm_gated": plain.rms_norm_gated},
    "fla.modules.norm.l2norm": {"l2norm": plain.l2norm},
    "fla.modules.activations.ops": {
        "sigmoid": torch.sigmoid,
        "logsigmoid": plain.logsigmoid,
        "swish": F.silu,
        "swiglu": plain.swiglu,
        "swiglu_linear": plain.swiglu_linear,
        "elu_p1": plain.elu_p1,
        "sqrelu": plain.sqrelu,
    },
    "fla.modules.token_shift": {"token_shift": plain.token_shift},
    "fla.ops.attnres": {"fused_attnres": plain.fused_attnres},
}
# fla's own plain versions: its kernel, and what it keeps beside it to test it with.
FLAS_OWN = {
    "fla.ops.rwkv7.fused_addcmul": ("fused_addcmul_rwkv7", "torch_addcmul_rwkv7"),
    "fla.ops.rwkv7.fused_k_update": ("fused_k_rwkv7", "k_update_ref"),
    "fla.ops.rwkv7.gate_output_correction": ("gate_output_correction", "gate_output_correction_ref"),
}

_replaced: list[tuple[Any, Any]] = []  # (fla's, ours)


def _wanted() -> bool:
    return os.environ.get("FLA_LRNN", "1") != "0"


def _first(*args: Any, **kwargs: Any) -> Tensor:
    for x in (*args, *kwargs.values()):
        if isinstance(x, Tensor):
            return x
    raise Error("fla was called without a tensor")


def _choice(theirs: Callable[..., Any], ours: Callable[..., Any], on_gpu: bool) -> Callable[..., Any]:
    """`ours` where it can do what is asked, `theirs` elsewhere."""

    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _wanted():
            x = _first(*args, **kwargs)
            if x.is_cpu:
                return ours(*args, **kwargs)  # theirs cannot run here
            if on_gpu and x.is_cuda and x.dtype != torch.float16:
                try:
                    return ours(*args, **kwargs)
                except Unsupported:
                    pass
        return theirs(*args, **kwargs)

    return call


def _of_fla(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        version = getattr(importlib.import_module("fla"), "__version__", "of this version")
        raise Error(f"fla {version} has no {module}.{name}", "lrnn follows fla-core 0.6.0: pip install flash-linear-attention==0.6.0") from None


def _swap(pairs: list[tuple[Any, Any]]) -> None:
    """Puts the second of each pair wherever fla or transformers hold the first."""
    by_id = {id(old): new for old, new in pairs}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] not in ("fla", "transformers") or module is None:
            continue
        for attribute, value in list(vars(module).items()):
            if id(value) in by_id:
                setattr(module, attribute, by_id[id(value)])
    table = _of_fla("fla.modules.activations.ops", "ACT2FN")
    for key, value in list(table.items()):
        table[key] = by_id.get(id(value), value)


def _back_end() -> Any:
    """lrnn as fla's dispatch knows back ends."""
    base = _of_fla("fla.backends", "BaseBackend")

    class LrnnBackend(base):  # type: ignore[misc,valid-type]
        """Kernels for CPUs and GPUs without compile time. Disable with ``FLA_LRNN=0``."""

        backend_type = "lrnn"
        package_name = "lrnn"
        env_var = "FLA_LRNN"
        priority = 1

        def chunk_gated_delta_rule_verifier(self, q: Tensor, *args: Any, **kwargs: Any) -> tuple[bool, str | None]:
            if q.is_cpu:
                return True, None  # nobody else could; what cannot be done is said
            if not q.is_cuda or q.dtype == torch.float16:
                return False, f"lrnn has no kernels for {q.dtype} on {q.device.type}"
            if kwargs.get("cp_context") is not None or len(args) > 14:
                return False, "lrnn has no context parallelism"
            return True, None

        chunk_gated_delta_rule = staticmethod(functions.chunk_gated_delta_rule)

    return LrnnBackend


def enable(accuracy: str | None = None) -> None:
    """fla's layers and models, and those of transformers that call fla, run on lrnn from here on.

    Call it before models are built: some keep the functions they were built with. fla must be
    installed (pip install flash-linear-attention==0.6.0).

    `accuracy` is that of :func:`lrnn.delta_product`, for all of `lrnn.fla` until `disable()`. In
    bfloat16 "fast" is as good as fla's own kernels and faster than the default, "accurate".
    """
    if accuracy not in (None, "fast", "accurate", "exact"):
        raise Error(f"accuracy must be fast, accurate or exact, got '{accuracy}'")
    functions.accuracy = accuracy
    if _replaced:
        return
    try:
        importlib.import_module("fla")
    except ImportError as error:
        raise Error(f"fla cannot be imported: {error}", "pip install flash-linear-attention==0.6.0") from None
    pairs = []
    kernels = dict(KERNELS)
    if _of_fla("fla.backends", "_DISPATCH_DISABLED"):
        kernels["fla.ops.gated_delta_rule"] += ("chunk_gated_delta_rule",)
    for module, names in kernels.items():
        for name in names:
            theirs = _of_fla(module, name)
            ours = getattr(kda if module == "fla.ops.kda" else functions, name)
            pairs.append((theirs, _choice(theirs, ours, on_gpu=True)))
    for table, on_gpu in ((AROUND, True), (ON_A_CPU, False)):
        for module, beside in table.items():
            for name, ours in beside.items():
                theirs = _of_fla(module, name)
                pairs.append((theirs, _choice(theirs, ours, on_gpu)))
    for module, (name, own) in FLAS_OWN.items():
        theirs = _of_fla(module, name)
        pairs.append((theirs, _choice(theirs, _of_fla(module, own), on_gpu=False)))
    loss = _of_fla("fla.modules.fused_cross_entropy.ops", "FusedCrossEntropyLoss")
    pairs.append((loss.forward, _method(loss.forward, plain.fused_cross_entropy_forward)))
    loss.forward = pairs[-1][1]
    _of_fla("fla.backends", "register")("gated_delta_rule")(_back_end())
    _swap(pairs)
    _replaced.extend(pairs)


def _method(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs)
    def call(self: Any, input: Tensor, target: Tensor) -> Any:
        return (ours if _wanted() and input.is_cpu else theirs)(self, input, target)

    return call


def disable() -> None:
    """Takes enable() back."""
    functions.accuracy = None
    if not _replaced:
        return
    _swap([(ours, theirs) for theirs, ours in _replaced])
    loss = _of_fla("fla.modules.fused_cross_entropy.ops", "FusedCrossEntropyLoss")
    loss.forward = _replaced[-1][0]
    _of_fla("fla.backends", "_get_operation_registry")("gated_delta_rule")._backends.pop("lrnn", None)
    _replaced.clear()
