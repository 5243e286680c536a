"""The nn.Modules: the same numbers as the program's mixers with the same weights, in pieces, packed and in any type."""

import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib"))
from harness import close, refused, run  # noqa: E402

import torch  # noqa: E402

import lrnn  # noqa: E402

folder = pathlib.Path(tempfile.mkdtemp())
WIDTH = 24

# The mixer of a config, and the layer that it is here.
PAIRS = {
    "delta_net": (
        {"name": "delta_product", "heads": 2, "key_dim": 12, "range": [-1, 1], "norm_eps": 1e-5},
        lambda: lrnn.nn.DeltaNet(hidden_size=WIDTH, num_heads=2, allow_neg_eigval=True),
    ),
    "gated_delta_net": (
        {"name": "delta_product", "heads": 2, "key_dim": 8, "value_dim": 16, "range": [0, 1], "forget_gate": True,
         "output_gate": True, "norm_eps": 1e-5},
        lambda: lrnn.nn.GatedDeltaNet(hidden_size=WIDTH, head_dim=8, num_heads=2),
    ),
    "gated_delta_product": (
        {"name": "delta_product", "heads": 2, "key_dim": 8, "value_dim": 16, "range": [-1, 1], "forget_gate": True,
         "output_gate": True, "householders": 3, "norm_eps": 1e-5},
        lambda: lrnn.nn.GatedDeltaProduct(hidden_size=WIDTH, head_dim=8, num_heads=2, num_householder=3),
    ),
    "delta_product_elu": (
        {"name": "delta_product", "heads": 3, "key_dim": 8, "conv": 0, "qk_activation": "elu", "qk_norm": "sum", "norm_eps": 1e-5},
        lambda: lrnn.nn.DeltaProduct(WIDTH, 3, 8, conv=0, qk_activation="elu", qk_norm="sum"),
    ),
    "gates of key channels": (
        {"name": "delta_product", "heads": 2, "key_dim": 8, "value_dim": 12, "value_heads": 4, "forget_gate": True,
         "gate_per": "channel", "output_gate": True, "householders": 2, "norm_eps": 1e-5},
        lambda: lrnn.nn.DeltaProduct(WIDTH, 2, 8, 12, value_heads=4, forget_gate=True, gate_per="channel", output_gate=True,
                                     householders=2),
    ),
    "gla": (
        {"name": "gla", "heads": 2, "key_dim": 6, "value_dim": 12, "range": [-1, 1], "conv": 4, "norm_eps": 1e-5},
        lambda: lrnn.nn.GatedLinearAttention(hidden_size=WIDTH, num_heads=2, use_short_conv=True, allow_neg_eigval=True),
    ),
    "mamba": ({"name": "mamba", "range": [-1, 1]}, lambda: lrnn.nn.Mamba(hidden_size=WIDTH, allow_neg_eigval=True)),
    "rwkv7": (
        {"name": "rwkv7", "heads": 3, "head_dim": 8, "range": [0, 2], "decay_rank": 5, "rate_rank": 6, "gate_rank": 7},
        lambda: lrnn.nn.RWKV7(hidden_size=WIDTH, head_dim=8, decay_low_rank_dim=5, a_low_rank_dim=6, gate_low_rank_dim=7,
                              allow_neg_eigval=True),
    ),
    "titans": (
        {"name": "titans", "heads": 2, "key_dim": 6, "value_dim": 8, "range": [0, 2], "output_gate": True},
        lambda: lrnn.nn.Titans(WIDTH, heads=2, key_dim=6, value_dim=8, largest_step=2, output_gate=True),
    ),
    "titans, plain": ({"name": "titans", "heads": 2, "conv": 0}, lambda: lrnn.nn.Titans(WIDTH, heads=2, conv=0)),
    "ttt": (
        {"name": "ttt", "heads": 2, "head_dim": 8, "mini_batch": 4, "conv": 3, "step": 2.0, "output_gate": True},
        lambda: lrnn.nn.TTT(WIDTH, heads=2, head_dim=8, mini_batch=4, conv=3, step=2, output_gate=True),
    ),
    "mlstm": ({"name": "mlstm", "heads": 2}, lambda: lrnn.nn.MLSTM(WIDTH, heads=2)),
    "slstm": ({"name": "slstm", "heads": 2, "conv": 4}, lambda: lrnn.nn.SLSTM(WIDTH, heads=2, conv=4)),
}


def disturbed(layer):
    """With weights of which none is 0 or 1: each must be where it belongs."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return layer


def check_equal_to_the_program():
    for name, (mixer, make) in PAIRS.items():
        config = {
            "seed": 3,
            "task": {"name": "modular_addition", "modulus": 5, "train": {"length": [3, 6]}, "eval": {"length": 6, "samples": 4}},
            "model": {"width": WIDTH, "layers": 1, "block": "plain", "norm": "none", "final_norm": False,
                      "mlp": {"name": "none"}, "mixer": mixer},
            "train": {"steps": 1, "batch": 4},
        }
        model = lrnn.load(lrnn.train(config, out=folder / name, progress=False)["run"])
        disturbed(model)
        layer = make()
        ours = {key.removeprefix("model.layers.0.attn."): value for key, value in model.state_dict().items() if ".attn." in key}
        assert layer.state_dict().keys() == ours.keys(), (name, layer.state_dict().keys() ^ ours.keys())
        layer.load_state_dict(ours)
        ids = torch.randint(5, (2, 70))
        with torch.no_grad():
            y, _ = layer(model.state_dict()["model.embeddings.weight"][ids])
            close(y @ model.state_dict()["lm_head.weight"].T, model(ids)[0], 1e-5, name)


def check_pieces_and_packed():
    torch.manual_seed(2)
    for name, (_, make) in PAIRS.items():
        layer = disturbed(make()).double()
        x = torch.randn(2, 30, WIDTH, dtype=torch.float64)
        y, last = layer(x)
        first, state = layer(x[:, :7])
        rest, state = layer(x[:, 7:], state)
        close(torch.cat([first, rest], 1), y, 1e-12, name)
        for a, b in zip(state, last):
            close(a, b, 1e-12, name)
        packed, states = layer(torch.cat([x[:1, :9], x[1:, :21]], 1), cu_seqlens=torch.tensor([0, 9, 9, 30]))
        close(packed, torch.cat([y[:1, :9], y[1:, :21]], 1), 1e-12, name)
        assert all(tensor.shape[0] == 3 for tensor in states), name
        again, _ = layer(torch.cat([x[:1, 9:12], x[1:, 21:25]], 1), [t[::2] for t in states], torch.tensor([0, 3, 7]))
        close(again, torch.cat([y[:1, 9:12], y[1:, 21:25]], 1), 1e-12, name)
        y.square().mean().backward()
        assert all(parameter.grad is not None for parameter in layer.parameters()), name
        refused(lrnn.Error, "the state has 9 tensors", layer, x, [None] * 9)


def check_types():
    for name, (_, make) in PAIRS.items():
        layer = disturbed(make())
        x = torch.randn(1, 20, WIDTH)
        want, _ = layer(x)
        narrow = make()
        narrow.load_state_dict(layer.state_dict())
        got, _ = narrow.bfloat16()(x.bfloat16())
        assert got.dtype == torch.bfloat16, name
        close(got, want, 0.06, name)
        with torch.autocast("cpu", torch.bfloat16):
            got, _ = layer(x)
        close(got, want, 0.06, name)


def check_flas_layers_are_the_same():
    """The same names, shapes and outputs as fla's own layers, which run on the CPU through lrnn.fla.enable()."""
    try:
        import fla.layers as theirs
    except ImportError as error:
        print(f"fla is not installed ({error}): its layers are not compared")
        return
    lrnn.fla.enable()
    cases = {
        "DeltaNet": {"hidden_size": WIDTH, "num_heads": 2, "allow_neg_eigval": True, "use_gate": True, "expand_v": 2.0},
        "GatedDeltaNet": {"hidden_size": WIDTH, "head_dim": 8, "num_heads": 2, "num_v_heads": 4, "conv_bias": True},
        "GatedDeltaProduct": {"hidden_size": WIDTH, "head_dim": 8, "num_heads": 2, "num_householder": 2},
        "GatedLinearAttention": {"hidden_size": WIDTH, "num_heads": 4, "num_kv_heads": 2},
        "KimiDeltaAttention": {"hidden_size": WIDTH, "head_dim": 8, "num_heads": 2, "num_v_heads": 4, "allow_neg_eigval": True,
                               "conv_bias": True},
        "RWKV7Attention": {"hidden_size": 64, "head_dim": 32, "layer_idx": 0, "num_hidden_layers": 2},
    }
    for name, arguments in cases.items():
        torch.manual_seed(4)
        their = disturbed(getattr(theirs, name)(**arguments))
        ours = getattr(lrnn.nn, "RWKV7" if name == "RWKV7Attention" else name)(**arguments)
        shapes = [{key: value.shape for key, value in layer.state_dict().items()} for layer in (ours, their)]
        assert shapes[0] == shapes[1], (name, shapes)
        ours.load_state_dict(their.state_dict())
        x = torch.randn(2, 70, arguments["hidden_size"])
        with torch.no_grad():
            close(ours(x)[0], their(x)[0], 1e-5, name)
    safe = {"hidden_size": WIDTH, "head_dim": 8, "num_heads": 2, "safe_gate": True, "lower_bound": -5.0}
    their = disturbed(theirs.KimiDeltaAttention(**safe))
    ours = lrnn.nn.KimiDeltaAttention(**safe)
    ours.load_state_dict(their.state_dict())
    x = torch.randn(2, 70, WIDTH)
    with torch.no_grad():
        close(ours(x)[0], their(x)[0], 1e-5, "a gate with a lower bound")
    lrnn.fla.disable()


def check_what_is_not_there_is_named():
    refused(lrnn.Error, "lrnn has no feature_map='elu'", lrnn.nn.GatedLinearAttention, feature_map="elu")
    refused(lrnn.Error, "lrnn has no output_gate_activation='sigmoid'", lrnn.nn.GatedDeltaNet, output_gate_activation="sigmoid")
    refused(TypeError, "unexpected keyword argument 'heads'", lrnn.nn.DeltaNet, heads=3)
    refused(lrnn.Error, "no gate_per='channel' with forget_gate=False", lrnn.nn.DeltaProduct, WIDTH, gate_per="channel")
    refused(lrnn.Error, "pass them as v_first", lrnn.nn.RWKV7(hidden_size=64, layer_idx=1), torch.zeros(1, 2, 64))


run(globals())
