#!/usr/bin/env python3
"""What torch does with functions, done with ours: torch.func (grad, vjp, jacrev, vmap in any order),
torch.compile of whole graphs for any length, torch.export, checkpointing that saves what is named. Forward
mode is in tests/scripts/tangents_from_python.py.
"""

import functools
import warnings

from lib.harness import close, refused, run  # first: it skips where there is no torch
import torch
from lib.problems import everything, problems, results, wide
from torch.utils._python_dispatch import TorchDispatchMode

import lrnn

torch.set_num_threads(1)  # the problems are too small to share
# What each call of a batch may have its own of, but that is no sequence.
PARAMETERS = {"selective_scan": {"A", "D", "delta_bias"}, "slstm": {"R", "bias"}, "ttt": {"weight", "bias"},
              "short_conv": {"weight", "bias"}, "rms_norm": {"weight"}}


class Calls(TorchDispatchMode):
    """Counts calls of lrnn's inner ops."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        if op.namespace == "lrnn":
            self.names.append(op.name()[6:])
        return op(*args, **(kwargs or {}))


def all_problems():
    for packed in (False, True):
        for name, function, tensors, options in problems(packed=packed):
            yield name, function, {key: x.double() for key, x in tensors.items()}, options


def flat(function, keys, options):
    """Takes the tensors by position and returns one vector."""
    return lambda *xs: torch.cat([y.reshape(-1) for y in results(function(**dict(zip(keys, xs)), **options))])


def batch_of(tensors, n=3):
    torch.manual_seed(5)
    return {key: torch.stack([x * (1 + 0.1 * torch.rand_like(x)) for _ in range(n)]) for key, x in tensors.items()}


def at(tensors, i):
    return {key: x[i] for key, x in tensors.items()}


# ---------------------------------------------------------------------------------------------- torch.func
def check_vmap_is_one_call():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns where it makes a loop of a call
        for name, function, tensors, options in all_problems():
            own = PARAMETERS.get(name, set())
            batch = batch_of(tensors)
            for axis in (0, 1):
                keys = list(tensors)
                dims = tuple(None if key in own else min(axis, tensors[key].dim()) for key in keys)
                xs = [tensors[key] if key in own else batch[key].movedim(0, min(axis, tensors[key].dim())) for key in keys]
                with Calls() as calls:
                    got = torch.func.vmap(flat(function, keys, options), dims)(*xs)
                assert len(calls.names) == 1, f"{name}: {calls.names}"
                f = flat(function, keys, options)
                want = torch.stack([f(*[tensors[key] if key in own else batch[key][i] for key in keys]) for i in range(3)])
                close(got, want, 1e-12, f"{name}: vmap")


def check_vmap_of_some():
    """One input in a batch, the others shared; parameters, too."""
    for name, function, tensors, options in all_problems():
        f, keys, batch = flat(function, list(tensors), options), list(tensors), batch_of(tensors)
        for key in keys:
            xs = [batch[k] if k == key else tensors[k] for k in keys]
            got = torch.func.vmap(f, tuple(0 if k == key else None for k in keys))(*xs)
            want = torch.stack([f(*[batch[k][i] if k == key else tensors[k] for k in keys]) for i in range(3)])
            close(got, want, 1e-12, f"{name}: vmap over {key}")


def check_gradients_in_a_batch():
    """vmap of grad: every example has its own gradient, of shared parameters as well."""
    for name, function, tensors, options in all_problems():
        keys, batch, own = list(tensors), batch_of(tensors), PARAMETERS.get(name, set())
        f = flat(function, keys, options)
        weights = torch.randn(f(*tensors.values()).shape).double()
        gradient = torch.func.grad(lambda *xs: f(*xs) @ weights, tuple(range(len(keys))))
        for shared in (own, set(keys[1:]), set(keys[:1]), set(keys) - {"v"}):
            if len(shared) == len(keys):
                continue
            xs = [tensors[k] if k in shared else batch[k] for k in keys]
            with Calls() as calls:
                got = torch.func.vmap(gradient, tuple(None if k in shared else 0 for k in keys))(*xs)
            if not own:
                assert len(calls.names) == 2, f"{name}: {calls.names}"
            for i in range(3):
                want = gradient(*[tensors[k] if k in shared else batch[k][i] for k in keys])
                for key, x, y in zip(keys, got, want):
                    close(x[i], y, 1e-10, f"{name}: vmap of grad, d{key}")


def check_reverse_mode():
    for name, function, tensors, options in all_problems():
        f, xs = flat(function, list(tensors), options), list(tensors.values())
        leaves = [x.clone().requires_grad_() for x in xs]
        y = f(*leaves)
        weights = torch.randn_like(y)
        want = torch.autograd.grad(y, leaves, weights)
        every = tuple(range(len(xs)))
        ways = {"grad": torch.func.grad(lambda *a: f(*a) @ weights, every)(*xs), "vjp": torch.func.vjp(f, *xs)[1](weights)}
        if name not in ("mlstm", "slstm", "selective_scan") and "cu_seqlens" not in options:  # a jacobian takes a while
            jacobians = torch.func.jacrev(f, every)(*xs)
            ways["jacrev"] = [torch.tensordot(weights, j, 1) for j in jacobians]
            pair = [torch.stack([x, 2 * x]) for x in xs]
            first = torch.func.vmap(torch.func.jacrev(f))(*pair)[0]  # two batches in each other
            close(first, jacobians[0], 1e-10, f"{name}: vmap of jacrev")
        for way, got in ways.items():
            for key, x, y in zip(tensors, got, want):
                close(x, y, 1e-10, f"{name}: {way}, d{key}")


def check_nested_vmap():
    for name, function, tensors, options in all_problems():
        if name in PARAMETERS:
            continue
        f, keys = flat(function, list(tensors), options), list(tensors)
        twice = {key: torch.stack([batch_of(tensors)[key], 2 - batch_of(tensors)[key]]) for key in keys}
        with Calls() as calls:
            got = torch.func.vmap(torch.func.vmap(f))(*twice.values())
        assert len(calls.names) == 1, f"{name}: {calls.names}"
        close(got[1, 2], f(*[twice[key][1, 2] for key in keys]), 1e-12, f"{name}: vmap of vmap")


def check_second_derivatives_are_refused():
    for name, function, tensors, options in problems():
        leaves = {key: x.clone().requires_grad_() for key, x in tensors.items()}
        y = results(function(**leaves, **options))[0].square().sum()
        first = torch.autograd.grad(y, list(leaves.values()), create_graph=True)
        for key, x in zip(leaves, first):
            refused(RuntimeError, f"[{name}] has no second derivative", torch.autograd.grad, x.sum(), leaves[key], retain_graph=True)


# ------------------------------------------------------------------------------------ compile, export, save
def longer(name, tensors, T):
    """The same problem with T tokens."""
    whole = wide(name) | PARAMETERS.get(name, set()) | ({"state"} if name == "short_conv" else set())
    return {key: x if key in whole else torch.cat([x] * T, 1)[:, :T].clone() for key, x in tensors.items()}


def check_compile():
    """One graph without a break, and one for all lengths but short ones, which keep nothing between chunks."""
    for name, function, tensors, options in problems():
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
        everything(compiled, longer(name, tensors, 400), options)
        with torch._dynamo.config.patch(error_on_recompile=True):
            for T in (300, 555):
                inputs = longer(name, tensors, T)
                got, want = everything(compiled, inputs, options), everything(function, inputs, options)
                for key, x in got.items():
                    close(x, want[key], 1e-6, f"{name}, compiled, T = {T}: {key}")
        for T in (1, 5):
            inputs = longer(name, tensors, T)
            close(results(compiled(**inputs, **options))[0], results(function(**inputs, **options))[0], 1e-6, f"{name}, compiled, T = {T}")


def check_compile_of_fla_names():
    torch._dynamo.reset()

    def layer(x, weight, beta, g):
        x, _ = lrnn.fla.causal_conv1d(x, weight, activation="silu")
        q, k, v = x.unflatten(-1, (3, 2, 4)).unbind(2)
        return lrnn.fla.chunk_gated_delta_rule(q, k, v, g, beta, use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True,
                                               output_final_state=True, state_v_first=True)

    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for T in (5, 9):
        inputs = torch.randn(2, T, 24), torch.randn(24, 3), torch.randn(2, T, 2), -torch.rand(2, T, 2)
        for x, y in zip(compiled(*inputs), layer(*inputs)):
            close(x, y, 1e-6, "compiled layer")


def check_packed_compile():
    for name, function, tensors, options in problems(packed=True):
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        got, want = everything(compiled, tensors, options), everything(function, tensors, options)
        for key, x in got.items():
            close(x, want[key], 1e-6, f"{name}, compiled, packed: {key}")


def check_export():
    class Layer(torch.nn.Module):
        def forward(self, q, k, v, beta):
            o, state = lrnn.delta_product(lrnn.l2_norm(q, 1e-6), k, v, beta)
            return o, state

    def inputs(T):
        return torch.randn(2, T, 3, 4), torch.nn.functional.normalize(torch.randn(2, T, 2, 3, 4), dim=-1), torch.randn(2, T, 2, 3, 5), torch.rand(2, T, 2, 3)

    length = torch.export.Dim("length", min=2, max=4096)
    program = torch.export.export(Layer(), inputs(6), dynamic_shapes=({1: length},) * 4)
    assert any("lrnn.delta_product" in str(node.target) for node in program.graph.nodes)
    for T in (2, 50):
        xs = inputs(T)
        for x, y in zip(program.module()(*xs), Layer()(*xs)):
            close(x, y, 1e-6, f"exported, T = {T}")


def check_checkpoints():
    """What is recomputed: everything, or all but the recurrence, whose results are kept by their name."""
    from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    _, function, tensors, _ = next(problems())
    leaves = {key: x.clone().requires_grad_() for key, x in tensors.items()}
    block = lambda: function(**leaves)[0].square().sum()
    wanted = torch.autograd.grad(block(), list(leaves.values()))
    saved = [torch.ops.lrnn.delta_product_forward.default]
    for names, times in (([], 2), (saved, 1)):
        context = functools.partial(create_selective_checkpoint_contexts, names)
        with Calls() as calls:
            grads = torch.autograd.grad(checkpoint(block, use_reentrant=False, context_fn=context), list(leaves.values()))
        assert calls.names.count("delta_product_forward") == times, calls.names
        for x, y in zip(grads, wanted):
            assert torch.equal(x, y)


run(globals())
